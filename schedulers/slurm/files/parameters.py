"""Turn the parameters of a slurm.conf into settings of the scheduler."""

import re
from collections.abc import Iterator, Mapping
from math import inf
from typing import Any, Final, cast

from msgspec.structs import fields

from pipistrelle.platforms.slurm.conf import KeyFinding, SlurmConf, SlurmConfigError
from pipistrelle.platforms.slurm.keys import KEYS, KeySupport
from pipistrelle.platforms.slurm.lines import WORD
from pipistrelle.platforms.slurm.machine import is_linear, select_parameters
from pipistrelle.platforms.slurm.values import SlurmValueError, check_tres_names, read_names, read_tres, read_value
from pipistrelle.protocol.base.errors import did_you_mean, legible
from pipistrelle.schedulers.slurm.config.parameters import (
    PreemptSettings,
    PrioritySettings,
    SchedulerParameters,
    SelectSettings,
)

#: names in ``SelectTypeParameters`` as Slurm writes them
SELECT_PARAMETERS: Final = (
    *("CR_CPU", "CR_CPU_Memory", "CR_Core", "CR_Core_Memory", "CR_Memory", "CR_LLN", "CR_Pack_Nodes"),
    *("CR_ONE_TASK_PER_CORE", "CR_CORE_DEFAULT_DIST_BLOCK"),
)
#: names in ``SelectTypeParameters`` that are not supported: {name: why}
_SELECT_REFUSED: Final = {
    "CR_Socket": "sockets are not simulated; use CR_Core",
    "CR_Socket_Memory": "sockets are not simulated; use CR_Core_Memory",
    "other_cons_res": "Cray's plugins are not simulated",
    "other_cons_tres": "Cray's plugins are not simulated",
}
#: names in ``PriorityFlags``
PRIORITY_FLAGS: Final = (
    *("ACCRUE_ALWAYS", "CALCULATE_RUNNING", "DEPTH_OBLIVIOUS", "FAIR_TREE", "NO_FAIR_TREE", "INCR_ONLY", "MAX_TRES"),
    *("MAX_TRES_GRES", "NO_NORMAL_ALL", "NO_NORMAL_ASSOC", "NO_NORMAL_PART", "NO_NORMAL_QOS", "NO_NORMAL_TRES"),
    "SMALL_RELATIVE_TO_TIME",
)
_PREEMPT_MODES: Final = ("OFF", "CANCEL", "REQUEUE")
_PREEMPT_REFUSED: Final = {
    "WITHIN": "jobs of one QOS do not preempt each other; leave it out",
    "SUSPEND": "suspended jobs are not simulated; use REQUEUE or CANCEL",
    "GANG": "gang scheduling is not simulated; use REQUEUE or CANCEL",
}
ENFORCE: Final = ("associations", "limits", "qos", "safe", "nosteps", "nojobs", "wckeys", "all", "none")
#: {value of AccountingStorageEnforce: values that it implies}
_IMPLIED: Final = {
    "limits": ("associations",),
    "qos": ("associations",),
    "safe": ("associations", "limits"),
    "wckeys": ("associations",),
    "all": ("associations", "limits", "qos", "safe", "wckeys"),
}
#: {key: {value in upper case: why it has an effect that is not simulated, or not as in slurmctld}}
_DOUBTFUL: Final = {
    "PriorityFlags": {
        "MAX_TRES_GRES": "a flag of later versions of Slurm",
    },
    "SelectTypeParameters": {
        "CR_ONE_TASK_PER_CORE": "tasks share the threads of a core",
    },
}
#: resources that every cluster tracks
_TRACKED: Final = ("cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages")
#: {key of SchedulerParameters: its value for -1, which switches off the passes}
_OFF: Final = {"sched_interval": None, "bf_interval": inf}
_OPTION: Final = re.compile(r"([A-Za-z0-9_]+)(?:=(.*))?")


def scheduler_parameters(conf: SlurmConf) -> tuple[SchedulerParameters, list[KeyFinding]]:
    """Return ``SchedulerParameters``, and whether each key is honoured or ignored."""
    where, known = conf.where("SchedulerParameters"), KEYS["scheduler"]
    kinds = {one.name: one.type for one in fields(SchedulerParameters)}
    values: dict[str, Any] = {}
    findings: list[KeyFinding] = []
    for part in read_names(conf.text("SchedulerParameters")):
        found = _OPTION.fullmatch(part)
        name, text = (found[1], found[2]) if found is not None else (part, None)
        key = known.get(name.lower())
        shown = f"SchedulerParameters {legible(name, WORD)}"
        if key is None:
            hint = did_you_mean(name, [one.name for one in known.values()])
            hint = hint if hint.startswith("Did") else ""
            findings.append(KeyFinding(where, shown, None, f"unknown key. {hint}".rstrip()))
            continue
        findings.append(KeyFinding(where, shown, key.support, key.meaning))
        if key.support is not KeySupport.HONOURED or key.name not in kinds:
            continue
        if key.name in _OFF and text == "-1":
            values[key.name] = _OFF[key.name]
            continue
        try:
            if key.kind == "flag":
                values[key.name] = True if text is None else bool(read_value("flag", text))
                continue
            value = cast(int, read_value(key.kind, text or ""))
        except SlurmValueError as error:
            expected = f"{error.expected}, or -1 for none" if key.name in _OFF else error.expected
            raise _wrong(shown, where, expected, text or "") from None
        if key.name == "sched_interval":
            value = max(1, value)  # the main loop ticks once a second
        values[key.name] = value if kinds[key.name] is int else float(value)
    made = SchedulerParameters(**values)
    return made, [*findings, *_useless(made, values, where)]


def _useless(made: SchedulerParameters, values: Mapping[str, Any], where: str) -> Iterator[KeyFinding]:
    """Yield a warning for each limit on tested jobs that a pass never reaches.

    slurmctld warns about these, too.
    """
    for name in ("bf_max_job_part", "bf_max_job_user", "bf_max_job_user_part", "bf_max_job_assoc"):
        most = made.bf_max_job_test - (name == "bf_max_job_part")
        if values.get(name, 0) > most:
            why = f"it is not below bf_max_job_test ({made.bf_max_job_test:,}), so it limits nothing"
            yield KeyFinding(where, f"SchedulerParameters {name}", KeySupport.WARNED, why)


def priority_settings(conf: SlurmConf) -> PrioritySettings:
    """Return the keys that begin with ``Priority``.

    Raise SlurmConfigError for an unknown flag, or a period of 0.
    """

    def weight(name: str) -> int:
        return cast(int, conf.value(f"PriorityWeight{name}", 0) or 0)

    if conf.value("PriorityCalcPeriod", 1.0) == 0.0:
        found = conf.text("PriorityCalcPeriod")
        raise _wrong("PriorityCalcPeriod", conf.where("PriorityCalcPeriod"), "at least 1 minute", found)
    flags = {name.upper() for name in read_names(conf.text("PriorityFlags"))}
    _known("PriorityFlags", flags, PRIORITY_FLAGS, conf)
    return PrioritySettings(
        type=str(conf.value("PriorityType", "priority/basic")),
        decay_half_life=_seconds(conf, "PriorityDecayHalfLife", 7 * 86400.0),
        calc_period=max(60.0, _seconds(conf, "PriorityCalcPeriod", 300.0)),
        max_age=_seconds(conf, "PriorityMaxAge", 7 * 86400.0),
        favor_small=bool(conf.value("PriorityFavorSmall", False)),
        usage_reset_period=str(conf.value("PriorityUsageResetPeriod", "NONE")),
        flags=frozenset(flags),
        weight_age=weight("Age"),
        weight_assoc=weight("Assoc"),
        weight_fairshare=weight("Fairshare"),
        weight_job_size=weight("JobSize"),
        weight_partition=weight("Partition"),
        weight_qos=weight("QOS"),
        weight_tres=_tres(conf, "PriorityWeightTRES"),
        fair_share_dampening_factor=max(1, cast(int, conf.value("FairShareDampeningFactor", 1) or 1)),
    )


def select_settings(conf: SlurmConf) -> SelectSettings:
    """Return the settings of node selection.

    Raise SlurmConfigError if a parameter is unknown or not supported.
    """
    names = {name.upper(): name for name in (*SELECT_PARAMETERS, *_SELECT_REFUSED)}
    found: set[str] = set()
    for part in select_parameters(conf):
        name = names.get(part.upper())
        if name is None:
            _known("SelectTypeParameters", {part}, SELECT_PARAMETERS, conf)
        elif name in _SELECT_REFUSED:
            raise _refused("SelectTypeParameters", name, _SELECT_REFUSED[name], conf)
        else:
            found.add(name)
    plugin = str(conf.value("TopologyPlugin", "topology/none"))
    return SelectSettings(
        type="select/linear" if is_linear(conf) else "select/cons_tres",
        parameters=frozenset(found),
        topology_plugin=plugin if plugin == "topology/tree" else "topology/none",
        topology_param=frozenset(name.upper() for name in read_names(conf.text("TopologyParam"))),
        **memory_defaults(conf),
    )


def doubtful_values(conf: SlurmConf) -> list[KeyFinding]:
    """Return warnings about values with which Slurm might decide differently.

    There is a warning for each flag that is ignored here or has another effect, if it could change Slurm's decisions,
    and for each list of weights with a resource that Slurm does not track.
    """
    found = [
        KeyFinding(conf.where(key), f"{key} {name}", KeySupport.WARNED, why)
        for key, reasons in _DOUBTFUL.items()
        for name in read_names(conf.text(key))
        if (why := reasons.get(name.upper())) is not None
    ]
    weights = [("PriorityWeightTRES", conf.parameters.get("priorityweighttres"))]
    weights += [("TRESBillingWeights", entry.get("TRESBillingWeights")) for entry in conf.entries.get("partitions", [])]
    tracked = {*_TRACKED, *(name.lower() for name in read_names(conf.text("AccountingStorageTRES")))}
    for key, setting in weights:
        names = [] if setting is None else [one.partition("=")[0].strip() for one in read_names(setting.text)]
        strange = [legible(name, WORD) for name in names if name.lower() not in tracked]
        if strange and setting is not None:
            why = f"slurmctld does not start: AccountingStorageTRES lacks {', '.join(strange)}"
            found.append(KeyFinding(setting.where, key, KeySupport.WARNED, why))
    return found


def memory_defaults(of: Any) -> dict[str, int]:
    """Return {field: value} of the memory and GPU defaults and limits that are not 0.

    Args:
        of: a slurm.conf, or one of its partitions.
    """
    keys = {
        "def_mem_per_cpu": "DefMemPerCPU",
        "def_mem_per_node": "DefMemPerNode",
        "max_mem_per_cpu": "MaxMemPerCPU",
        "max_mem_per_node": "MaxMemPerNode",
        "def_cpu_per_gpu": "DefCPUPerGPU",
        "def_mem_per_gpu": "DefMemPerGPU",
    }
    found = {field: value for field, key in keys.items() if (value := of.value(key))}
    for kind in ("def", "max"):
        if f"{kind}_mem_per_node" in found:
            found.pop(f"{kind}_mem_per_cpu", None)  # Slurm ignores it
    return found


def preempt_settings(conf: SlurmConf) -> PreemptSettings:
    """Return the settings of preemption.

    Raise SlurmConfigError for modes that are not supported, or that the type excludes.
    """
    exempt = _seconds(conf, "PreemptExemptTime", 0.0)
    kind = str(conf.value("PreemptType", "preempt/none"))
    modes = preempt_modes(conf.text("PreemptMode"), conf.where("PreemptMode")) or ("OFF",)
    if (kind == "preempt/none") != (modes == ("OFF",)):
        raise SlurmConfigError(
            "PreemptType and PreemptMode do not go together",
            where=conf.where("PreemptMode" if kind == "preempt/none" else "PreemptType"),
            expected="preempt/none with OFF, or another type with REQUEUE or CANCEL",
            found=f"{kind} with {','.join(modes)}",
        )
    return PreemptSettings(
        type=kind,
        mode=modes,
        exempt_time=0.0 if exempt == float("inf") else exempt,
    )


def preempt_modes(text: str, where: str) -> tuple[str, ...]:
    """Return the modes of preemption in upper case.

    Raise SlurmConfigError if a mode is not supported.
    """
    modes = tuple(name.upper() for name in read_names(text))
    for mode in modes:
        if mode in _PREEMPT_REFUSED:
            raise SlurmConfigError(
                f"PreemptMode {mode} is not supported", where=where, hint=f"{_capital(_PREEMPT_REFUSED[mode])}."
            )
        if mode not in _PREEMPT_MODES:
            raise _wrong("PreemptMode", where, " or ".join(_PREEMPT_MODES), mode)
    return modes


def enforced(conf: SlurmConf) -> frozenset[str]:
    """Return the values of ``AccountingStorageEnforce``.

    The result includes the values that they imply.
    """
    names = {name.lower() for name in read_names(conf.text("AccountingStorageEnforce"))}
    names = {"none" if name in ("0", "no") else "associations" if name in ("1", "yes") else name for name in names}
    _known("AccountingStorageEnforce", names, ENFORCE, conf)
    return frozenset(names | {more for name in names for more in _IMPLIED.get(name, ())}) - {"none"}


def billing_weights(text: str, where: str) -> dict[str, float]:
    """Parse ``TRESBillingWeights``; return the weight per CPU, MiB and so on.

    Raises:
        SlurmConfigError: the text is malformed.
    """
    return _tres_weights("TRESBillingWeights", text, where)


def _tres(conf: SlurmConf, key: str) -> dict[str, float]:
    text = conf.text(key)
    return _tres_weights(key, text, conf.where(key)) if text else {}


def _tres_weights(key: str, text: str, where: str) -> dict[str, float]:
    try:
        check_tres_names(text)
        return read_tres(text, memory=False)
    except SlurmValueError as error:
        raise _wrong(key, where, error.expected, text) from None


def _seconds(conf: SlurmConf, key: str, default: float) -> float:
    return cast(float, conf.value(key, default))


def _known(key: str, names: set[str], known: tuple[str, ...], conf: SlurmConf) -> None:
    for name in sorted(names - set(known)):
        hint = did_you_mean(name, list(known))
        raise SlurmConfigError(
            f"{key} has an unknown value", where=conf.where(key), found=f"'{legible(name, WORD)}'", hint=hint
        )


def _refused(key: str, name: str, why: str, conf: SlurmConf) -> SlurmConfigError:
    return SlurmConfigError(f"{key} {name} is not supported", where=conf.where(key), hint=f"{_capital(why)}.")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _wrong(key: str, where: str, expected: str, found: str) -> SlurmConfigError:
    return SlurmConfigError(
        f"the value of {key} is wrong", where=where, expected=expected, found=f"'{legible(found, WORD)}'"
    )

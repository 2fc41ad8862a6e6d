"""Change single keys of a cluster's configuration, for studies and the option --slurm.

A key is a parameter of slurm.conf (``PriorityWeightAge``), one of ``SchedulerParameters`` (``bf_window``), or a key of
an object: ``partition.debug.MaxTime``, ``qos.high.MaxTRESPU``, ``account.bio.GrpTRES``, ``user.u1.Fairshare``.
"""

from collections.abc import Mapping
from typing import Final

from pipistrelle.platforms.slurm.conf import ConfEntry, ConfSetting, SlurmConf, SlurmConfigError
from pipistrelle.platforms.slurm.keys import KEYS, ConfKey, KeySupport
from pipistrelle.platforms.slurm.lines import WORD
from pipistrelle.platforms.slurm.values import SlurmValueError, read_names, read_value
from pipistrelle.protocol.base.errors import did_you_mean, legible

_OBJECTS: Final = ("partition", "qos", "account", "user")
_SCHEDULER: Final = "schedulerparameters"
#: option of the command line, for messages
OPTION: Final = "--slurm"


def overridden(conf: SlurmConf, changes: Mapping[str, str]) -> tuple[SlurmConf, list[tuple[str, str]]]:
    """Return the configuration with changed keys, and the changes of accounting as files of commands.

    Args:
        changes: {key: value as text}.

    Raises:
        SlurmConfigError: a key or a partition is unknown, or a value is wrong.
    """
    made = SlurmConf(conf.name, dict(conf.parameters), {**conf.entries}, list(conf.findings))
    commands: list[tuple[str, str]] = []
    for key, text in changes.items():
        where = f"{OPTION} {legible(key, WORD)}"
        kind, *rest = key.split(".")
        kind = kind.lower()
        if kind in _OBJECTS and len(rest) >= 2:
            name, option = ".".join(rest[:-1]), rest[-1]
            if kind == "partition":
                _partition(made, name, option, text, where)
            else:
                commands.append((where, f"modify {kind} '{name}' set '{option}={text}'"))
        elif len(rest) == 1 and kind == _SCHEDULER:
            _scheduler(made, rest[0], text, where)
        elif not rest and kind in KEYS["parameters"]:
            made.parameters[kind] = _setting(KEYS["parameters"][kind], text, where)
        elif not rest and kind in KEYS["scheduler"]:
            _scheduler(made, key, text, where)
        else:
            known = [one.name for section in ("parameters", "scheduler") for one in KEYS[section].values()]
            hint = did_you_mean(key, known)
            raise SlurmConfigError(
                "the configuration has no such key",
                where=where,
                expected="KEY, partition.NAME.KEY, qos.NAME.OPTION, account.NAME.OPTION or user.NAME.OPTION",
                hint=hint if hint.startswith("Did") else "'pipistrelle help slurm' lists the keys.",
            )
    return made, commands


def _partition(made: SlurmConf, name: str, option: str, text: str, where: str) -> None:
    key = KEYS["partitions"].get(option.lower())
    entries = made.entries.get("partitions", [])
    names = [entry.name for entry in entries]
    if name not in names:
        raise SlurmConfigError(
            f"there is no partition '{legible(name, WORD)}'", where=where, hint=did_you_mean(name, names)
        )
    if key is None:
        hint = did_you_mean(option, [one.name for one in KEYS["partitions"].values()])
        raise SlurmConfigError(
            "a partition has no such key", where=where, hint=hint if hint.startswith("Did") else None
        )
    setting = _setting(key, text, where)
    made.entries["partitions"] = [
        ConfEntry(entry.name, entry.where, {**entry.settings, key.name.lower(): setting})
        if entry.name == name
        else entry
        for entry in entries
    ]


def _scheduler(made: SlurmConf, name: str, text: str, where: str) -> None:
    key = KEYS["scheduler"].get(name.lower())
    if key is None:
        hint = did_you_mean(name, [one.name for one in KEYS["scheduler"].values()])
        raise SlurmConfigError("SchedulerParameters has no such key", where=where, hint=hint)
    setting = _setting(key, text if text or key.kind != "flag" else "YES", where)
    kept = [
        part for part in read_names(made.text("SchedulerParameters")) if part.partition("=")[0].lower() != name.lower()
    ]
    own = [key.name] if setting.value is True else [] if setting.value is False else [f"{key.name}={text}"]
    joined = ",".join([*kept, *own])
    made.parameters[_SCHEDULER] = ConfSetting(joined, joined, where)


def _setting(key: ConfKey, text: str, where: str) -> ConfSetting:
    if key.support is not KeySupport.HONOURED:
        raise SlurmConfigError(
            f"{key.name} has no effect: {key.meaning}", where=where, expected="a key that is honoured"
        )
    try:
        return ConfSetting(text, read_value(key.kind, text), where)
    except SlurmValueError as error:
        raise SlurmConfigError(
            f"the value of {key.name} is wrong", where=where, expected=error.expected, found=f"'{legible(text, WORD)}'"
        ) from None


def text_of(value: object) -> str:
    """Return a plain value from a study's file as the text that a configuration file would have."""
    if isinstance(value, bool):
        return "YES" if value else "NO"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)

"""Change single keys of a cluster's configuration.

Studies and the option --slurm use this.

A key is a parameter of slurm.conf (``PriorityWeightAge``), one of ``SchedulerParameters`` (``bf_window``), or a key of
an object: ``partition.debug.MaxTime``, ``qos.high.MaxTRESPU``, ``account.bio.GrpTRES``, ``user.u1.Fairshare``. Keys
``simulation.NAME`` set times that are in none of Slurm's files: when the controller starts, and how fast nodes answer
it.
"""

from collections.abc import Mapping
from math import inf
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from pipistrelle.platforms.slurm.conf import ConfEntry, ConfSetting, SlurmConf, SlurmConfigError
from pipistrelle.platforms.slurm.keys import KEYS, ConfKey, KeySupport
from pipistrelle.platforms.slurm.lines import WORD
from pipistrelle.platforms.slurm.values import SlurmValueError, read_names, read_value
from pipistrelle.protocol.base.errors import did_you_mean, legible
from pipistrelle.schedulers.slurm.config.settings import AnswerDelay, SlurmConfig

_OBJECTS: Final = ("partition", "qos", "account", "user")
_SCHEDULER: Final = "schedulerparameters"
_SIMULATION: Final = "simulation"
_ANSWERS: Final = AnswerDelay()
#: option of the command line, for messages
OPTION: Final = "--slurm"
#: {key after ``simulation.``: (meaning, default as text)}
SIMULATION_KEYS: Final = {
    "start": ("when the controller starts: the phase of its ticks and periods, s", "4 with slurmdbd, else 0"),
    "answer_delay": ("time from a job's end to the request for a scheduling pass, s", f"{_ANSWERS.least}"),
    "answer_delay_per_node": (
        "further time for each node of the job after the fourth, s",
        f"{_ANSWERS.per_node}",
    ),
}
#: s after time 0 at which a controller with slurmdbd starts, because it waits for slurmdbd
_START_WITH_DBD: Final = 4.0
#: longest time of a key ``simulation.NAME``, s
_LONGEST: Final = 1e6


class Overrides(Struct, frozen=True):
    """A changed configuration.

    Attributes:
        conf: the slurm.conf with its changed keys.
        commands: (name, text) of each file with sacctmgr commands that change accounts and QOS.
        simulation: {NAME: value} of the keys ``simulation.NAME``.
    """

    conf: SlurmConf
    commands: list[tuple[str, str]]
    simulation: Mapping[str, float]

    def timed(self, config: SlurmConfig) -> SlurmConfig:
        """Return ``config`` with the times that the keys ``simulation.NAME`` set."""
        told = self.simulation
        answers = AnswerDelay(
            least=told.get("answer_delay", _ANSWERS.least),
            per_node=told.get("answer_delay_per_node", _ANSWERS.per_node),
        )
        start = told.get("start", _START_WITH_DBD if config.accounting_storage else 0.0)
        return replace(config, start=start, answers=answers)


def overridden(conf: SlurmConf, changes: Mapping[str, str]) -> Overrides:
    """Apply changes to a copy of a configuration.

    Args:
        changes: {key: value as text}.

    Raises:
        SlurmConfigError: a key or a partition is unknown, or a value is wrong.
    """
    made = SlurmConf(conf.name, dict(conf.parameters), {**conf.entries}, list(conf.findings))
    commands: list[tuple[str, str]] = []
    simulation: dict[str, float] = {}
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
        elif len(rest) == 1 and kind == _SIMULATION and rest[0] in SIMULATION_KEYS:
            simulation[rest[0]] = _simulated(text, where)
        elif len(rest) == 1 and kind == _SCHEDULER:
            _scheduler(made, rest[0], text, where)
        elif not rest and kind in KEYS["parameters"]:
            made.parameters[kind] = _setting(KEYS["parameters"][kind], text, where)
        elif not rest and kind in KEYS["scheduler"]:
            _scheduler(made, key, text, where)
        else:
            known = [one.name for section in ("parameters", "scheduler") for one in KEYS[section].values()]
            known += [f"{_SIMULATION}.{name}" for name in SIMULATION_KEYS]
            hint = did_you_mean(key, known)
            raise SlurmConfigError(
                "the configuration has no such key",
                where=where,
                expected="KEY, partition.NAME.KEY, qos.NAME.OPTION, account.NAME.OPTION, user.NAME.OPTION or"
                " simulation.NAME",
                hint=hint if hint.startswith("Did") else "'pipistrelle help slurm' lists the keys.",
            )
    return Overrides(made, commands, simulation)


def _simulated(text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = inf
    if not 0 <= value <= _LONGEST:
        raise SlurmConfigError(
            "a time of the simulation is wrong",
            where=where,
            expected=f"0 to {_LONGEST:.0f} s",
            found=f"'{legible(text, WORD)}'",
        )
    return value


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
    """Convert a plain value of a study's file to text as in a slurm.conf."""
    if isinstance(value, bool):
        return "YES" if value else "NO"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)

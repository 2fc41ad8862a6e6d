"""Parse the options of associations and QOS; some options have several names.

Source: manual of sacctmgr, Slurm 22.05.
"""

import tomllib
from collections.abc import Iterator, Mapping
from math import inf
from pathlib import Path
from typing import Any, Final, NamedTuple

from pipistrelle.platforms.slurm.conf import KeyFinding, SlurmConfigError
from pipistrelle.platforms.slurm.keys import KeySupport
from pipistrelle.platforms.slurm.lines import WORD
from pipistrelle.platforms.slurm.values import (
    SlurmValueError,
    check_tres_names,
    read_count,
    read_names,
    read_time,
    read_tres,
    read_value,
    read_whole,
)
from pipistrelle.protocol.base.errors import did_you_mean, legible

ASSOCIATION: Final = "association"
QOS: Final = "qos"
#: Slurm's number for ``Fairshare=parent``
_PARENT: Final = ("parent", "2147483647")

_TABLES: Final = tomllib.loads((Path(__file__).parent / "library" / "limits.toml").read_text(encoding="utf-8"))


class _Name(NamedTuple):
    field: str
    tres: str


def _names(table: Mapping[str, str]) -> Iterator[tuple[str, _Name]]:
    for field, names in table.items():
        for word in names.split():
            name, _, tres = word.partition(":")
            yield name, _Name(field, tres)


#: {kind: {name of an option: field}}
NAMES: Final = {kind: dict(_names(_TABLES[kind])) for kind in (ASSOCIATION, QOS)}
#: {kind: {name of an option: why it has no effect}}
IDLE: Final = {
    kind: {name: why for why, names in _TABLES[f"{kind}_idle"].items() for name in names.split()}
    for kind in (ASSOCIATION, QOS)
}
#: {kind: {name of an option: why it has an effect that is not simulated}}
WARNED: Final = {
    kind: {name: why for why, names in _TABLES[f"{kind}_warned"].items() for name in names.split()}
    for kind in (ASSOCIATION, QOS)
}
#: values of such options with which they have no effect
_NOTHING: Final = ("", "-1", "0", "0.000000", "1", "1.000000")
_TIMES: Final = ("grp_wall", "max_wall_pj", "preempt_exempt_time")
_NUMBERS: Final = ("usage_factor",)
#: {flag of a QOS in lower case: (its name, why it is ignored; "" if it is honoured)}
_FLAGS: Final = {
    name.lower(): (name, why)
    for name, why in (
        *((name, "") for name in ("DenyOnLimit", "NoDecay", "NoReserve", "OverPartQOS", "PartitionMaxNodes")),
        *((name, "") for name in ("PartitionMinNodes", "PartitionTimeLimit", "RequiresReservation")),
        ("EnforceUsageThreshold", "usage of the fairshare holds up no job"),
        ("UsageFactorSafe", "the usage factor does not change how limits of minutes are tested"),
    )
}
#: {TRES: its number in Slurm}; limits are tested in this order, and further TRES after these
_ORDER: Final = {name: at for at, name in enumerate(("cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem"))}
_COUNTS: Final = ("priority", "min_prio_thresh")


def plain_name(text: str) -> str:
    """Return an option's name in lower case, without blanks and underscores."""
    return text.lower().replace(" ", "").replace("_", "")


class LimitOptions:
    """Collects the options of associations and QOS.

    For each option, it records whether the option is honoured or ignored.

    Attributes:
        findings: for each option, in order, whether it is honoured, ignored or unknown.
    """

    def __init__(self) -> None:
        self.findings: list[KeyFinding] = []

    def set(self, kind: str, settings: dict[str, Any], name: str, text: str, where: str) -> None:
        """Set an option of an association or a QOS, and add a finding.

        The finding says whether the option is honoured, ignored or unknown.

        Args:
            kind: whose option it is, an association or a QOS; a key of `NAMES`.
            settings: {field: value} to change.
            name: the option's name as written; a ``+`` or ``-`` at its end adds to or takes from a list.

        Raises:
            SlurmConfigError: the value is malformed.
        """
        shown, mode = legible(name, WORD), name[-1:] if name[-1:] in "+-" else ""
        plain = plain_name(name.rstrip("+-"))
        found = NAMES[kind].get(plain)
        if found is None:
            why = IDLE[kind].get(plain)
            if (doubtful := WARNED[kind].get(plain)) is not None:
                support = KeySupport.IDLE if text in _NOTHING else KeySupport.WARNED
                self.findings.append(KeyFinding(where, shown, support, doubtful))
            elif why is None:
                hint = did_you_mean(plain, [*NAMES[kind], *IDLE[kind]])
                hint = hint if hint.startswith("Did") else ""
                self.findings.append(KeyFinding(where, shown, None, f"unknown option. {hint}".rstrip()))
            else:
                self.findings.append(KeyFinding(where, shown, KeySupport.IDLE, why))
            return
        self.findings.append(KeyFinding(where, shown, KeySupport.HONOURED, "a limit or a value of " + kind))
        if found.field == "flags":
            self._flags(shown, text, where)
        try:
            self._set(settings, found, text.strip(), mode)
        except SlurmValueError as error:
            raise SlurmConfigError(
                f"the value of {shown} is wrong",
                where=where,
                expected=error.expected,
                found=f"'{legible(text, WORD)}'",
            ) from None

    def _flags(self, shown: str, text: str, where: str) -> None:
        """Add a finding for each flag in a QOS's list ``text`` that is ignored or unknown."""
        for flag in read_names(text):
            name, why = _FLAGS.get(flag.lower(), (flag, None))
            option = f"{shown} {legible(name, WORD)}"
            if why is None and flag != "-1":
                hint = did_you_mean(flag, [one for one, _ in _FLAGS.values()])
                self.findings.append(KeyFinding(where, option, None, f"unknown flag. {hint}".rstrip()))
            elif why:
                self.findings.append(KeyFinding(where, option, KeySupport.WARNED, why))

    def _set(self, settings: dict[str, Any], name: _Name, text: str, mode: str) -> None:
        field = name.field
        if field in ("qos", "preempt"):
            names = read_names(text.lower())
            old = settings.get(field) or ()
            if mode and field == "qos" and all(one[:1] in "+-" for one in old):  # a change of the inherited list
                signs = dict.fromkeys(names, mode)
                names = tuple(sign + one for one, sign in ({name[1:]: name[0] for name in old} | signs).items())
            elif mode == "+":
                names = (*old, *(one for one in names if one not in old))
            elif mode == "-":
                names = tuple(one for one in old if one not in names)
            _put(settings, field, names)
        elif field == "flags":
            flags = frozenset(_FLAGS.get(flag.lower(), (flag,))[0] for flag in read_names(text) if flag != "-1")
            old = settings.get(field, frozenset())
            _put(settings, field, old | flags if mode == "+" else old - flags if mode == "-" else flags)
        elif field in ("name", "partition", "parent", "default_qos"):
            _put(settings, field, text.lower() if field == "default_qos" else text)
        elif not text:
            return  # a column without a value
        elif field == "preempt_mode":
            _put(settings, field, _preempt_mode(text))
        elif field == "shares":
            _put(settings, field, inf if text.lower() in _PARENT else _at_least_0(read_whole(text)))
        elif field == "grace_time":
            _put(settings, field, read_time(text, 1.0))
        elif field in _TIMES:
            seconds = read_time(text)
            _put(settings, field, None if seconds == inf else seconds)
        elif field in _NUMBERS:
            _put(settings, field, None if text == "-1" else _real(text))
        elif field in _COUNTS:
            least = None if field == "min_prio_thresh" else 0
            _put(settings, field, least if text == "-1" else read_value("whole:0-4294967295", text))
        elif name.tres:
            _put(settings, field, _tres(settings.get(field, {}), f"{name.tres}={text}"))
        elif "tres" in field:
            _put(settings, field, _tres(settings.get(field, {}), text))
        else:
            _put(settings, field, read_count(text))


def _preempt_mode(text: str) -> str | None:
    """Return the mode of a QOS, or None if it is the cluster's."""
    if text.lower() in ("cluster", "none"):
        return None
    if text.upper() not in ("OFF", "CANCEL", "REQUEUE"):
        raise SlurmValueError("cluster, CANCEL, REQUEUE or OFF; GANG and SUSPEND are not supported")
    return text.upper()


def _put(settings: dict[str, Any], field: str, value: Any) -> None:
    """Set a field; if the value is None (no limit), restore the field's default."""
    if value is None:
        settings.pop(field, None)
    else:
        settings[field] = value


def _tres(old: Mapping[str, float], text: str) -> dict[str, float]:
    """Return the TRES limits ``old`` after a change such as ``cpu=8,mem=-1``.

    The amount -1 removes the limit of a TRES. The result is in the order in which Slurm tests TRES.
    """
    check_tres_names(text)
    gone = {part.partition("=")[0].strip().lower() for part in read_names(text) if part.endswith("=-1")}
    left = {name: amount for name, amount in {**old, **read_tres(text)}.items() if name not in gone}
    return dict(sorted(left.items(), key=lambda one: _ORDER.get(one[0], len(_ORDER))))


def _at_least_0(value: int | None) -> float:
    if value is None or value < 0:
        if value == -1:
            return 1.0
        raise SlurmValueError("a whole number of at least 0, or parent")
    return float(value)


def _real(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < inf:
        raise SlurmValueError("a number of at least 0")
    return value

"""Parse the values of attributes and properties in SimGrid's platform files."""

import math
import re
from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from pipistrelle.platforms.errors import PlatformError
from pipistrelle.protocol.base.errors import did_you_mean, shown

_T = TypeVar("_T")

_DECIMAL: Final = r"\+?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_NUMBER: Final = re.compile(_DECIMAL)
_QUANTITY: Final = re.compile(rf"({_DECIMAL})([A-Za-z]*)")
_RANGE: Final = re.compile(r"([0-9]{1,10})(?:\s*-\s*([0-9]{1,10}))?")
_LARGEST: Final = 2**31 - 1  # SimGrid reads whole numbers into 32 bits

_PREFIXES: Final = ("", "k", "M", "G", "T", "P", "E", "Z", "Y")
_LONG_PREFIXES: Final = ("", "kilo", "mega", "giga", "tera", "peta", "exa", "zetta", "yotta")
_FLOPS: Final = {
    **{f"{prefix}f": 1000.0**power for power, prefix in enumerate(_PREFIXES)},
    **{f"{prefix}flops": 1000.0**power for power, prefix in enumerate(_LONG_PREFIXES)},
    "zetaflops": 1000.0**7,  # SimGrid's own spelling; its manual has "zettaflops"
    "": 1.0,
}

_TOPOLOGIES: Final = ("FLAT", "TORUS", "FAT_TREE", "DRAGONFLY")


class Watts(msgspec.Struct, frozen=True):
    """The power of a host in one pstate (W).

    It is linear in the load unless the host is idle.

    Args:
        idle: the power without any work.
        epsilon: the power as the load approaches 0; at load x the power is ``epsilon + x * (full - epsilon)``.
        full: the power with all cores busy.
    """

    idle: float
    epsilon: float
    full: float


class SleepPstate(msgspec.Struct, frozen=True):
    """A pstate for sleeping, and the pstates for switching off and on.

    Switching takes as long as one flop at the speed of the pstate for switching off or on.
    """

    sleeping: int
    switching_off: int
    switching_on: int


def parse_speeds(text: str) -> tuple[float, ...]:
    """Parse an attribute ``speed``: the speeds (flop/s) of a host, one per pstate.

    As in SimGrid, a value without a unit is in flop/s.

    Raises:
        PlatformError: if it is not a comma-separated list of finite quantities of at least 0 with one of SimGrid's
            units.
    """
    rule = "one speed per pstate, as '1Gf' or '100Mf,50Mf', in f, kf, Mf, Gf, Tf, Pf, Ef, Zf, Yf or ...flops"
    return _each(text, ",", _speed, "a speed cannot be read", rule)


def _each(text: str, between: str, read: Callable[[str], _T | None], what: str, expected: str) -> tuple[_T, ...]:
    """Parse each part of a text with `read`.

    The parts are separated by ``between``. Raise PlatformError if `read` returns None.
    """
    values = [read(part.strip()) for part in text.split(between)]
    known = tuple(value for value in values if value is not None)
    if len(known) != len(values):
        raise PlatformError(what, expected=expected, found=shown(text.strip()))
    return known


def _speed(text: str) -> float | None:
    quantity = _QUANTITY.fullmatch(text)
    if quantity is None or quantity[2] not in _FLOPS:
        return None
    speed = float(quantity[1]) * _FLOPS[quantity[2]]
    return speed if math.isfinite(speed) else None


def parse_count(text: str, *, least: int) -> int:
    """Parse a 32-bit whole number of at least `least`, such as "8" or "8.0".

    Raise PlatformError for any other text.
    """
    digits = re.fullmatch(r"([0-9]{1,10})(?:\.0*)?", text.strip())
    count = int(digits[1]) if digits else -1
    if not least <= count <= _LARGEST:
        raise PlatformError("a count cannot be read", expected=f"a whole number of at least {least}", found=shown(text))
    return count


def parse_radical(text: str) -> tuple[range, ...]:
    """Parse an attribute ``radical``, the numbers of hosts, such as "0-9,12,20-22".

    Raises:
        PlatformError: if it is not a comma-separated list of 32-bit numbers and ascending ranges.
    """
    rule = "numbers and ascending ranges with commas between, as '0-9,12,20-22'"
    return _each(text, ",", _range, "a radical cannot be read", rule)


def _range(text: str) -> range | None:
    ends = _RANGE.fullmatch(text)
    if ends is None:
        return None
    first, last = int(ends[1]), int(ends[2] or ends[1])
    return range(first, last + 1) if first <= last <= _LARGEST else None


def parse_topology(topology: str, parameters: str) -> int | None:
    """Return the number of hosts that a cluster's topology requires; None: any number.

    Raises:
        PlatformError: if the topology is unknown or its parameters have another form.
    """
    if topology not in _TOPOLOGIES:
        raise PlatformError(f"unknown topology {shown(topology)}", hint=did_you_mean(topology, list(_TOPOLOGIES)))
    if topology == "FLAT":
        return None
    sections = [section.split(",") for section in parameters.replace(" ", "").split(";")]
    if topology == "TORUS":
        form, factors = "'x,y,z'", sections[0] if len(sections) == 1 else []
    elif topology == "FAT_TREE":
        form, factors = "'levels;down;up;links'", sections[1] if len(sections) == 4 else []
    else:
        form, factors = "'groups,links;chassis,links;routers,links;nodes'", [section[0] for section in sections]
        factors = factors if len(sections) == 4 else []
    if not factors or not all(re.fullmatch("[0-9]{1,9}", factor) and int(factor) for factor in factors):
        raise PlatformError(
            f"the topo_parameters of a {topology} cannot be read", expected=form, found=shown(parameters)
        )
    return math.prod(int(factor) for factor in factors)


def parse_watts(text: str, *, pstates: int, cores: int, one_core: bool) -> tuple[Watts, ...]:
    """Parse a property with a host's power in each pstate: "95:100:200, 93:98:170".

    The first value is the power when idle, and the last one is the power with all cores busy. The middle value is the
    power at nearly no load; without a middle value, the power at nearly no load is the power when idle.

    With `one_core`, as in older versions of SimGrid, the middle value is the power with one core busy. The power at
    nearly no load is extrapolated from it. A single-core host is then idle or fully busy.

    Raises:
        PlatformError: unless there is one part per pstate, each of two or three numbers of at least 0.
    """
    parts = text.split(",")
    if len(parts) != pstates:
        raise PlatformError(
            "the watts do not suit the pstates",
            expected=f"{pstates} part(s) with commas between, one for each speed",
            found=f"{len(parts)} in {shown(text)}",
        )
    return tuple(_watts(part, cores, one_core) for part in parts)


def _watts(text: str, cores: int, one_core: bool) -> Watts:
    what = "the watts of a pstate cannot be read"
    rule = "two or three numbers of at least 0, as '95:200' or '95:100:200'"
    known = _each(text, ":", _watt, what, rule)
    if len(known) not in (2, 3):
        raise PlatformError(what, expected=rule, found=shown(text.strip()))
    idle, middle, full = known[0], known[-2], known[-1]
    if one_core and cores == 1:
        middle = full
    elif one_core and len(known) == 3:
        middle -= (full - middle) / (cores - 1)
    return Watts(idle, middle, full)


def parse_watt(text: str) -> float:
    """Parse a power (W); PlatformError if it is not a finite number of at least 0."""
    return _each(text, "\n", _watt, "the watts cannot be read", "a number of at least 0")[0]


def _watt(text: str) -> float | None:
    value = float(text) if _NUMBER.fullmatch(text) else math.inf
    return value if math.isfinite(value) else None


def parse_sleep_pstates(text: str, speeds: tuple[float, ...]) -> tuple[SleepPstate, ...]:
    """Parse Batsim's property ``sleep_pstates``: triples of pstates, as "13:14:15".

    Raises:
        PlatformError: if a triple is not three pstates of the host, or a pstate for sleeping occurs in two roles. Also
            if a pstate for switching has the speed 0, because switching would never end.
    """
    triples = tuple(_triple(part, len(speeds)) for part in text.split(","))
    switching = {pstate for triple in triples for pstate in (triple.switching_off, triple.switching_on)}
    taken = set(switching)
    for triple in triples:
        if triple.sleeping in taken:
            raise PlatformError(
                "the sleep_pstates contradict each other",
                expected="each pstate to sleep in once, and not to switch through",
                found=f"pstate {triple.sleeping} again in {shown(text)}",
            )
        taken.add(triple.sleeping)
    for pstate in sorted(switching):
        if not speeds[pstate]:
            raise PlatformError(
                "a host would take forever to switch",
                expected="a speed above 0 in a pstate to switch through: it lasts one flop",
                found=f"pstate {pstate} of speed 0",
            )
    return triples


def _triple(text: str, pstates: int) -> SleepPstate:
    parts = [part.strip() for part in text.split(":")]
    numbers = [int(part) if re.fullmatch("[0-9]{1,9}", part) else pstates for part in parts]
    if len(numbers) != 3 or max(numbers) >= pstates:
        raise PlatformError(
            "the sleep_pstates cannot be read",
            expected=f"triples SLEEPING:SWITCHING_OFF:SWITCHING_ON of pstates from 0 to {pstates - 1}, as '1:2:3'",
            found=shown(text.strip()),
        )
    return SleepPstate(*numbers)

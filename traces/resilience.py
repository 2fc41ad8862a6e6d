"""How a job meets the failure of its nodes, as the command line or a workload says it."""

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final, Literal, cast

from msgspec import Struct

from pipistrelle.protocol.base.errors import PipistrelleError, did_you_mean, quoted

Kind = Literal["none", "checkpoint", "spares", "moldable", "grid"]
#: how the time of work between two dumps is chosen, where it is not given in seconds
Optimum = Literal["young", "daly"]
#: where a job that has lost its nodes queues again: at its original submit time, as submitted now, or not at all
Requeue = Literal["original", "back", "never"]
#: what a new attempt's walltime is: what was asked for, or that less the work that is saved
RestartWalltime = Literal["full", "rest"]
#: whether dumps and reads take of the walltime that a user asked for, or it is extended by what they are expected to be
Walltime = Literal["asked", "extended"]

_LONGEST: Final = 1e9
_TIME: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)", re.ASCII)
#: seconds in a unit, as in the language of failures
_UNITS: Final = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
#: digits enough for any machine
_COUNT: Final = re.compile(r"\d{1,9}", re.ASCII)
_SHARE: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*%", re.ASCII)
#: members of a job's JSON object ``resilience``; each is a text or number as on the command line
MEMBERS: Final = ("checkpoint", "dump", "read", "spares", "resilience")


class ResilienceError(PipistrelleError):
    """A way to meet failures that makes no sense."""


class Resilience(Struct, frozen=True):
    """What a job does when its nodes fail.

    ``none``: it loses its allocation and all its work. ``checkpoint``: it loses its allocation, and its next attempt
    begins from the last dump. ``spares``: F of its nodes stay idle; while some are left, it goes on with one in the
    place of the one that failed. ``moldable``: it goes on with one node less. ``grid``: it runs on the largest square
    grid, p x p; it loses a row, then a column, whose other nodes become spares. The last three give their allocation
    up at failure F + 1.

    Args:
        interval: work between two dumps, in seconds, or how it is chosen; None: there are no dumps.
        dump, read: how long a dump and the reading of one take on the whole allocation, in seconds.
        spares, share: F as a number of nodes, or as a share of the allocation (rounded down, but at least one node);
            both None: as many as there can be.
    """

    kind: Kind = "none"
    interval: float | Optimum | None = None
    dump: float = 0.0
    read: float = 0.0
    spares: int | None = None
    share: float | None = None

    @property
    def rates_matter(self) -> bool:
        """Whether the time between dumps depends on how often nodes fail."""
        return isinstance(self.interval, str)

    def tolerated(self, nodes: int) -> int:
        """Return F, the number of failures that a job on so many nodes survives in its allocation."""
        most = nodes - 1
        if self.kind in ("none", "checkpoint"):
            return 0
        if self.share is not None:
            return min(max(1, math.floor(self.share * nodes * (1 + 1e-12))), most)
        return most if self.spares is None else min(self.spares, most)


#: a job that loses its allocation and all its work
NONE: Final = Resilience()


def parse_resilience(
    *,
    checkpoint: str | None = None,
    dump: str | None = None,
    read: str | None = None,
    spares: str | None = None,
    resilience: str | None = None,
) -> Resilience:
    """Return what these texts of the command line say, each None if it was not given.

    Args:
        checkpoint: ``daly``, ``young``, or the time between two dumps: ``3600``, ``1h``.
        dump, read: times: ``120``, ``2min``.
        spares: a number of nodes, or a share of the allocation: ``4``, ``1%``.
        resilience: ``none``, ``moldable`` or ``grid``.

    Raises:
        ResilienceError: when a text cannot be read, or they do not go together.
    """
    if resilience not in (None, "none", "moldable", "grid"):
        raise ResilienceError(
            f"there is no resilience {quoted(resilience)}",
            where="--resilience",
            hint=did_you_mean(resilience or "", ["none", "moldable", "grid"]),
        )
    if resilience == "none" and any(text is not None for text in (checkpoint, dump, read, spares)):
        raise ResilienceError("a job without resilience has no dumps and no spares", where="--resilience none")
    dumping = 0.0 if dump is None else _time(dump, "--dump")
    reading = 0.0 if read is None else _time(read, "--read")
    if checkpoint is None:
        for name, text in (("--dump", dump), ("--read", read)):
            if text is not None:
                raise ResilienceError(
                    f"{name} without --checkpoint: there are no dumps", expected="--checkpoint daly|young|SECONDS"
                )
    interval = None if checkpoint is None else _interval(checkpoint, dumping)
    count, share = (None, None) if spares is None else _spares(spares)
    kind: Kind = "spares" if spares is not None else "checkpoint" if checkpoint is not None else "none"
    if resilience in ("moldable", "grid"):
        kind = cast(Kind, resilience)
    return Resilience(kind, interval, dumping, reading, count, share)


def resilience_of(members: Mapping[str, Any], where: str) -> Resilience:
    """Return what a job's JSON object ``resilience`` says, such as ``{"checkpoint": "daly", "dump": 120}``.

    Raises:
        ResilienceError: when it is not one, a member is unknown, or a value cannot be read; ``where`` names the job.
    """
    if not isinstance(members, Mapping):
        raise ResilienceError(
            "a job's resilience is no object", where=where, expected='as {"checkpoint": "daly"}', found=quoted(members)
        )
    texts: dict[str, str] = {}
    for name, value in members.items():
        if name not in MEMBERS:
            raise ResilienceError(
                f"unknown member {quoted(name)} of a job's resilience",
                where=where,
                hint=did_you_mean(name, list(MEMBERS)),
            )
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ResilienceError(
                f"'{name}' of a job's resilience is neither text nor number", where=where, found=quoted(value)
            )
        if isinstance(value, str):
            texts[name] = value
        else:
            if not abs(value) <= _LONGEST:
                raise ResilienceError(
                    f"'{name}' of a job's resilience is out of range", where=where, expected=f"at most {_LONGEST:g}"
                )
            texts[name] = format(Decimal(repr(value)), "f")
    try:
        return parse_resilience(**texts)
    except ResilienceError as error:
        place = where if error.where is None else f"{where}, {error.where.removeprefix('--')}"
        what, expected = error.what.replace("--", ""), (error.expected or "").replace("--", "")  # members, not options
        raise ResilienceError(
            what, where=place, expected=expected or None, found=error.found, hint=error.hint
        ) from None


def _interval(text: str, dump: float) -> float | Optimum:
    if text == "young":
        return "young"
    if text == "daly":
        return "daly"
    if _TIME.fullmatch(text.strip()) is None:
        raise ResilienceError(
            "an interval cannot be read", where="--checkpoint", expected="daly, young or a time", found=quoted(text)
        )
    interval = _time(text, "--checkpoint")
    if interval <= 0 or interval < dump:
        raise ResilienceError(
            "an interval is shorter than the dump that ends it",
            where="--checkpoint",
            expected=f"at least {dump:g} s" if dump else "above 0 s",
            found=f"{interval:g} s",
        )
    return interval


def _time(text: str, where: str) -> float:
    found = _TIME.fullmatch(text.strip())
    if found is None or found[2] not in _UNITS:
        raise ResilienceError(
            "a time cannot be read", where=where, expected="a number of seconds, or as 2min", found=quoted(text)
        )
    seconds = float(found[1]) * _UNITS[found[2]]
    if seconds > _LONGEST:
        raise ResilienceError("a time is too long", where=where, expected=f"at most {_LONGEST:g} s", found=quoted(text))
    return seconds


def _spares(text: str) -> tuple[int | None, float | None]:
    share = _SHARE.fullmatch(text.strip())
    if share is not None and 0 < float(share[1]) < 100:
        return None, float(share[1]) / 100
    if _COUNT.fullmatch(text.strip()) and int(text) > 0:
        return int(text), None
    raise ResilienceError(
        "spares cannot be read",
        where="--spares",
        expected="a number of nodes, 1 or more, or a share such as 1%",
        found=quoted(text),
    )

"""Parse a job's reaction to failures of its nodes.

It comes from options or from a workload.
"""

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final, Literal, cast

from msgspec import Struct

from pipistrelle.protocol.base.errors import PipistrelleError, did_you_mean, quoted

Kind = Literal["none", "checkpoint", "spares", "moldable", "grid"]
#: formula that chooses the time between checkpoints
Optimum = Literal["young", "daly"]
#: queue position of a job that lost its nodes: by original submit time, at the back, or not requeued
Requeue = Literal["original", "back", "never"]
#: walltime of a new attempt: as requested, or less the saved work
RestartWalltime = Literal["full", "rest"]
#: whether writing and reading checkpoints counts against the requested walltime, or extends it by their expected time
Walltime = Literal["asked", "extended"]

_LONGEST: Final = 1e9
_TIME: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)", re.ASCII)
#: {unit: seconds}
_UNITS: Final = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_COUNT: Final = re.compile(r"\d{1,9}", re.ASCII)
_SHARE: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*%", re.ASCII)
#: members of a job's JSON object ``resilience``; values are as on the command line
MEMBERS: Final = ("checkpoint", "dump", "read", "spares", "resilience")


class ResilienceError(PipistrelleError):
    """A resilience option, or a combination of such options, is invalid."""


class Resilience(Struct, frozen=True):
    """What a job does when its nodes fail.

    - ``none``: it loses its allocation and all its work.
    - ``checkpoint``: it loses its allocation; the next attempt starts from the last checkpoint.
    - ``spares``: F of its nodes are spares. While any spare is left, it replaces the failed node and the job continues.
    - ``moldable``: the job continues without the failed node.
    - ``grid``: the job runs on the largest square grid, p x p, and the other nodes are spares. When no spare is left
      for a failed node, the grid loses a row, next time a column, and so on. The working nodes of that row or column
      become spares.

    With ``spares``, ``moldable`` and ``grid`` the job gives up its allocation at failure F + 1.

    Args:
        interval: work between two checkpoints (s), or the formula for it; None: no checkpoints.
        dump, read: time to write and to read a checkpoint on the whole allocation (s).
        spares, share: F as a number of nodes, or as a share of the allocation (rounded down, at least one node); both
            None: as many as possible.
    """

    kind: Kind = "none"
    interval: float | Optimum | None = None
    dump: float = 0.0
    read: float = 0.0
    spares: int | None = None
    share: float | None = None

    @property
    def rates_matter(self) -> bool:
        """Whether the time between checkpoints depends on the failure rate."""
        return isinstance(self.interval, str)

    def tolerated(self, nodes: int) -> int:
        """Return F, the number of failures that a job survives in its allocation."""
        most = nodes - 1
        if self.kind in ("none", "checkpoint"):
            return 0
        if self.share is not None:
            return min(max(1, math.floor(self.share * nodes * (1 + 1e-12))), most)
        return most if self.spares is None else min(self.spares, most)


#: the default: the job loses its allocation and all its work
NONE: Final = Resilience()


def parse_resilience(
    *,
    checkpoint: str | None = None,
    dump: str | None = None,
    read: str | None = None,
    spares: str | None = None,
    resilience: str | None = None,
) -> Resilience:
    """Parse the resilience options of the command line; None means not given.

    Args:
        checkpoint: ``daly``, ``young``, or the time between two checkpoints: ``3600``, ``1h``.
        dump, read: times: ``120``, ``2min``.
        spares: a number of nodes, or a share of the allocation: ``4``, ``1%``.
        resilience: ``none``, ``moldable`` or ``grid``.
    """
    if resilience not in (None, "none", "moldable", "grid"):
        raise ResilienceError(
            f"unknown resilience {quoted(resilience)}",
            where="--resilience",
            hint=did_you_mean(resilience or "", ["none", "moldable", "grid"]),
        )
    if resilience == "none" and any(text is not None for text in (checkpoint, dump, read, spares)):
        raise ResilienceError("checkpoints and spares cannot be combined with it", where="--resilience none")
    dumping = 0.0 if dump is None else _time(dump, "--dump")
    reading = 0.0 if read is None else _time(read, "--read")
    if checkpoint is None:
        for name, text in (("--dump", dump), ("--read", read)):
            if text is not None:
                raise ResilienceError(f"{name} needs --checkpoint", expected="--checkpoint daly|young|SECONDS")
    interval = None if checkpoint is None else _interval(checkpoint, dumping)
    count, share = (None, None) if spares is None else _spares(spares)
    kind: Kind = "spares" if spares is not None else "checkpoint" if checkpoint is not None else "none"
    if resilience in ("moldable", "grid"):
        kind = cast(Kind, resilience)
    return Resilience(kind, interval, dumping, reading, count, share)


def resilience_of(members: Mapping[str, Any], where: str) -> Resilience:
    """Parse the resilience in a job's JSON object, such as {"checkpoint": "daly"}."""
    if not isinstance(members, Mapping):
        raise ResilienceError(
            "the job's resilience is not an object",
            where=where,
            expected='{"checkpoint": "daly"}',
            found=quoted(members),
        )
    texts: dict[str, str] = {}
    for name, value in members.items():
        if name not in MEMBERS:
            raise ResilienceError(
                f"unknown member {quoted(name)} in the job's resilience",
                where=where,
                hint=did_you_mean(name, list(MEMBERS)),
            )
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ResilienceError(
                f"'{name}' in the job's resilience is neither text nor a number", where=where, found=quoted(value)
            )
        if isinstance(value, str):
            texts[name] = value
        else:
            if not abs(value) <= _LONGEST:
                raise ResilienceError(
                    f"'{name}' in the job's resilience is out of range", where=where, expected=f"at most {_LONGEST:g}"
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
            "unknown checkpoint interval", where="--checkpoint", expected="daly, young or a time", found=quoted(text)
        )
    interval = _time(text, "--checkpoint")
    if interval <= 0 or interval < dump:
        raise ResilienceError(
            "the interval is shorter than the checkpoint that ends it",
            where="--checkpoint",
            expected=f"at least {dump:g} s" if dump else "above 0 s",
            found=f"{interval:g} s",
        )
    return interval


def _time(text: str, where: str) -> float:
    found = _TIME.fullmatch(text.strip())
    if found is None or found[2] not in _UNITS:
        raise ResilienceError(
            "invalid time", where=where, expected="a number of seconds, or a time such as 2min", found=quoted(text)
        )
    seconds = float(found[1]) * _UNITS[found[2]]
    if seconds > _LONGEST:
        raise ResilienceError("time too long", where=where, expected=f"at most {_LONGEST:g} s", found=quoted(text))
    return seconds


def _spares(text: str) -> tuple[int | None, float | None]:
    share = _SHARE.fullmatch(text.strip())
    if share is not None and 0 < float(share[1]) < 100:
        return None, float(share[1]) / 100
    if _COUNT.fullmatch(text.strip()) and int(text) > 0:
        return int(text), None
    raise ResilienceError(
        "invalid number of spares",
        where="--spares",
        expected="a number of nodes, 1 or more, or a share such as 1%",
        found=quoted(text),
    )

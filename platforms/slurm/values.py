"""Parse values in Slurm's configuration.

They are numbers, times, lists and amounts of resources. Source: manuals of slurm.conf and sacctmgr, Slurm 22.05.
"""

import re
from collections.abc import Callable
from math import inf
from typing import Final, cast

_TIME: Final = re.compile(r"(?:(\d{1,9})-)?(\d{1,9})(?::(\d{1,9}))?(?::(\d{1,9}))?")
_ENDLESS: Final = ("INFINITE", "UNLIMITED", "-1")
_UNITS: Final = {"minutes": 60.0, "seconds": 1.0}
_NUMBER: Final = re.compile(r"[-+]?\d{1,15}")
_DECIMAL: Final = re.compile(r"(\d{1,15}(?:\.\d{0,9})?|\.\d{1,9})([KMGTP]?)", re.IGNORECASE)
_SCALES: Final = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4, "P": 1024**5}
_LARGEST: Final = 10**15
_TRES_NAMES: Final = ("billing", "cpu", "energy", "mem", "node", "pages", "vmem")
_TRES_HEADS: Final = ("bb/", "fs/", "gres/", "ic/", "license/")

Value = int | float | bool | str | tuple[str, ...] | None


class SlurmValueError(Exception):
    """A value of the wrong kind; ``expected`` describes a correct one."""

    def __init__(self, expected: str) -> None:
        self.expected = expected
        super().__init__(expected)


def read_time(text: str, one: float = 60.0) -> float:
    """Parse a time; return seconds, inf for INFINITE, UNLIMITED and -1.

    The forms are ``M``, ``M:S``, ``H:M:S``, ``D-H``, ``D-H:M`` and ``D-H:M:S``.

    Args:
        one: the unit of a number without colons, in seconds; 60: such a number is in minutes.
    """
    if text.upper() in _ENDLESS:
        return inf
    found = _TIME.fullmatch(text)
    if found is None:
        raise SlurmValueError("MINUTES, [DAYS-]HH:MM:SS or UNLIMITED" if one == 60.0 else "SECONDS or [DAYS-]HH:MM:SS")
    numbers = [int(number) for number in found.groups()[1:] if number is not None]
    if found[1] is not None:
        hours, minutes, seconds = [*numbers, 0, 0][:3]
        return float(int(found[1]) * 86400 + hours * 3600 + minutes * 60 + seconds)
    if len(numbers) == 1:
        return numbers[0] * one
    hours, minutes, seconds = [0, *numbers][-3:]
    return float(hours * 3600 + minutes * 60 + seconds)


def read_whole(text: str) -> int | None:
    """Parse a whole number; return None for INFINITE and UNLIMITED."""
    if text.upper() in _ENDLESS[:2]:
        return None
    if not _NUMBER.fullmatch(text):
        raise SlurmValueError("a whole number")
    return int(text)


def read_count(text: str) -> int | None:
    """Parse a whole number of at least 0; return None for INFINITE, UNLIMITED and -1."""
    value = None if text == "-1" else read_whole(text)
    if value is not None and value < 0:
        raise SlurmValueError("a whole number of at least 0, or UNLIMITED")
    return value


def read_flag(text: str) -> bool:
    """Parse a boolean in the spellings that Slurm accepts."""
    upper = text.upper()
    if upper in ("YES", "TRUE", "UP", "1", "Y"):
        return True
    if upper in ("NO", "FALSE", "DOWN", "0", "N"):
        return False
    raise SlurmValueError("YES or NO")


def read_names(text: str) -> tuple[str, ...]:
    """Parse a list of names separated by commas."""
    return tuple(name for name in (part.strip() for part in text.split(",")) if name)


def read_licenses(text: str) -> dict[str, int]:
    """Parse a list such as ``matlab:20,abaqus``; return {licence: number}.

    Slurm adds the numbers of a licence that is named twice.
    """
    found: dict[str, int] = {}
    for part in read_names(text):
        name, _, count = part.replace("=", ":").partition(":")
        if not name or "*" in name:
            raise SlurmValueError("NAME:NUMBER,... such as matlab:20")
        found[name] = found.get(name, 0) + (read_count(count or "1") or 0)
    return found


def read_megabytes(text: str) -> int | None:
    """Parse an amount of memory; return MiB, or None for INFINITE, UNLIMITED and -1."""
    try:
        return read_count(text)
    except SlurmValueError:
        raise SlurmValueError("megabytes as a whole number without a unit, or UNLIMITED") from None


def read_value(kind: str, text: str) -> Value:
    """Parse a value of the given kind.

    Kinds are those of `pipistrelle.platforms.slurm.keys.ConfKey`.

    Raises:
        SlurmValueError: if the text is malformed.
    """
    if kind.startswith("whole:"):
        low, high = map(int, kind.removeprefix("whole:").split("-"))
        if not text.isdecimal() or not text.isascii() or len(text) > 15 or not low <= int(text) <= high:
            raise SlurmValueError(f"a whole number from {low:,} to {high:,}")
        return int(text)
    if kind.startswith(("minutes:", "seconds:")):
        unit, bounds = kind.split(":")
        if text.upper() in _ENDLESS[:2]:
            return inf
        try:
            return cast(int, read_value(f"whole:{bounds}", text)) * _UNITS[unit]
        except SlurmValueError as error:
            raise SlurmValueError(f"{error.expected} ({unit}), or UNLIMITED") from None
    if kind.startswith("choice:"):
        choices = kind.removeprefix("choice:").split("|")
        found = next((choice for choice in choices if choice.upper() == text.upper()), None)
        if found is None:
            raise SlurmValueError(f"one of {', '.join(choices)}")
        return found
    reader = _READERS.get(kind)
    return text if reader is None else reader(text)


_READERS: Final[dict[str, Callable[[str], Value]]] = {
    "whole": read_count,
    "nodes": read_count,
    "flag": read_flag,
    "minutes": read_time,
    "seconds": lambda text: read_time(text, 1.0),
    "megabytes": read_megabytes,
    "names": read_names,
}


def check_tres_names(text: str) -> None:
    """Raise SlurmValueError if a list names an unknown TRES.

    The list is such as ``cpu=32,mem=256G``.
    """
    for name in (part.partition("=")[0].strip().lower() for part in read_names(text)):
        if name not in _TRES_NAMES and not name.startswith(_TRES_HEADS):
            raise SlurmValueError("TRES=NUMBER,... with cpu, mem, node, billing, energy, gres/NAME or license/NAME")


def read_tres(text: str, *, memory: bool = True) -> dict[str, float]:
    """Parse a list such as ``cpu=32,gres/gpu=4,mem=256G``.

    Return {TRES in lower case: amount}. Without a unit, ``mem`` counts MiB. An amount of -1 means no limit and is left
    out.

    Args:
        memory: whether values are amounts, so that ``mem`` is converted to MiB. If False, values are weights:
            ``Mem=0.25G`` is a weight per GiB, and the result is the weight per MiB.
    """
    found: dict[str, float] = {}
    for part in read_names(text):
        name, mark, amount = part.partition("=")
        match = _DECIMAL.fullmatch(amount)
        if amount == "-1" and mark and memory:
            continue
        if match is None or not mark or not name:
            raise SlurmValueError(
                "TRES=NUMBER,... such as cpu=32,mem=256G,gres/gpu=4"
                if memory
                else "TRES=WEIGHT,... such as cpu=1.0,mem=0.25G, with weights of at least 0"
            )
        value, unit = float(match[1]), match[2].upper()
        key = name.strip().lower()
        if key in ("mem", "vmem", "bb") and unit:
            scale = _SCALES[unit] / _SCALES["M"]
            value = value * scale if memory else value / scale
        elif unit:
            value *= _SCALES[unit]
        if value > _LARGEST:
            raise SlurmValueError(f"an amount of at most {_LARGEST:g}")
        found[key] = value
    return found

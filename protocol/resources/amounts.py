"""Read and write amounts of resources.

They are whole numbers in one base unit for each resource.
"""

import re
from fractions import Fraction
from typing import Final

from pipistrelle.protocol.base.errors import PipistrelleError, shown

#: the resources that every node may have; other resources have names of their own
CORES: Final = "cores"
MEMORY: Final = "memory"
GPU: Final = "gpu"
#: base units of one core and of one GPU
MILLI: Final = 1000
#: the largest amount; sums over the largest machine stay exact in 64 bits
MOST: Final = 2**42
#: the form of a resource's name, a GPU model's name and a licence's name
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/@-]{0,63}")

_NUMBER: Final = re.compile(r"([0-9]{1,19}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})\s*([A-Za-z]*)")
_STEPS: Final = {letter: step for step, letter in enumerate("KMGTPE", start=1)}
#: {unit in capitals: bytes}; a letter alone means a power of 1024, as in Slurm and PBS
_BYTES: Final = {
    "B": 1,
    **{letter: 1024**step for letter, step in _STEPS.items()},
    **{f"{letter}IB": 1024**step for letter, step in _STEPS.items()},
    **{f"{letter}B": 1000**step for letter, step in _STEPS.items()},
}
_MIB: Final = 1024**2


class AmountError(PipistrelleError):
    """A value that is not an amount of a resource."""


def parse_memory(value: object, what: str = "amount of memory", *, letter: str = "M") -> int:
    """Return an amount of memory in MiB, rounded up.

    Args:
        value: a whole number of MiB, or a text such as ``256 GiB``, ``512M`` or ``1.5T``. ``GB`` is 10**9 bytes; ``G``
            and ``GiB`` are 2**30 bytes.
        letter: the unit to assume in a text without a unit.

    Raises:
        AmountError: if the value is not such an amount, is negative, or exceeds `MOST`.
    """
    if isinstance(value, str):
        found = _NUMBER.fullmatch(value.strip())
        unit = None if found is None else _BYTES.get((found[2] or letter).upper())
        if found is None or unit is None:
            raise AmountError(
                f"an {what} cannot be read", expected="a number and a unit, such as '256 GiB'", found=shown(value)
            )
        size = Fraction(found[1] if found[1][-1] != "." else found[1][:-1]) * unit
        return _bounded(-(-size.numerator // (size.denominator * _MIB)), what, value)
    return parse_count(value, what)


def parse_milli(value: object, what: str) -> int:
    """Return a number of cores or GPUs in thousandths; it has at most three decimals.

    Raises:
        AmountError: if the value is not such a number, is negative, or exceeds `MOST`.
    """
    if isinstance(value, float):
        value = repr(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return _bounded(value * MILLI, what, value)
    found = _NUMBER.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None or found[2]:
        raise AmountError(f"{what} cannot be read", expected="a number of at least 0", found=shown(value))
    exact = Fraction(found[1] if found[1][-1] != "." else found[1][:-1]) * MILLI
    if exact.denominator != 1:
        raise AmountError(f"{what} has too many decimals", expected="at most three", found=shown(value))
    return _bounded(exact.numerator, what, value)


def parse_count(value: object, what: str) -> int:
    """Return a whole number of at least 0.

    Raises:
        AmountError: if the value is not such a number, or exceeds `MOST`.
    """
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,19}", value.strip()):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise AmountError(f"{what} cannot be read", expected="a whole number of at least 0", found=shown(value))
    return _bounded(value, what, value)


def parse_amount(name: str, value: object) -> int:
    """Return an amount of a resource in its base unit.

    Cores and GPUs are in thousandths and memory is in MiB. All other resources are whole numbers.

    Raises:
        AmountError: if the value is not such an amount.
    """
    if name == MEMORY:
        return parse_memory(value)
    if name in (CORES, GPU):
        return parse_milli(value, f"an amount of {name}")
    return parse_count(value, f"an amount of {name}")


def amount_text(name: str, amount: int) -> str:
    """Return an amount as people write it: ``16``, ``0.5``, ``256 GiB``."""
    if name == MEMORY:
        step, unit = next((s, u) for s, u in ((1024**2, "TiB"), (1024, "GiB"), (1, "MiB")) if amount % s == 0)
        return f"{amount // step} {unit}" if amount else "0 MiB"
    if name in (CORES, GPU):
        whole, rest = divmod(amount, MILLI)
        return f"{whole}.{rest:03}".rstrip("0") if rest else str(whole)
    return str(amount)


def _bounded(amount: int, what: str, value: object) -> int:
    if not 0 <= amount <= MOST:
        fault = "negative" if amount < 0 else "too large"
        raise AmountError(f"{what} is {fault}", expected=f"0 to {MOST:,} base units", found=shown(value))
    return amount


def base_of(resource: str) -> int:
    """Return how many base units make one core or GPU; 1 for other resources."""
    return MILLI if resource in (CORES, GPU) else 1

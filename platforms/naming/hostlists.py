"""Lists of node names as Slurm writes them: ``n[01-02,05],g1``.

Source: ``hostlist`` in the manual of slurm.conf. Brackets have numbers and ranges, separated by commas. All numbers of
a range have as many digits as its first number.
"""

import re
from collections.abc import Iterable
from itertools import product
from typing import Final

from pipistrelle.platforms.errors import PlatformError
from pipistrelle.protocol.base.errors import shown

#: the most names of one list; the largest machine of 2025 has 159,000 nodes
MOST_NAMES: Final = 200_000
#: the most names of all lists of one file, such as those of the partitions
MOST_IN_FILE: Final = 2_000_000

_ITEM: Final = re.compile(r"(?:[^,\[\]\s]|\[[^\[\]\s]*\])+")
_PART: Final = re.compile(r"\[([^\[\]]*)\]")
_RANGE: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
_NUMBERED: Final = re.compile(r"(.*?)(\d{1,9})", re.DOTALL)


def expanded(text: str, where: str, what: str = "names of nodes") -> list[str]:
    """Return the names in a list such as ``n[01-02,05],g1``, in the order of the list.

    Raises:
        PlatformError: if the list is malformed or has more than `MOST_NAMES` names.
    """
    names: list[str] = []
    for item in _items(text, where, what):
        head, *rest = _PART.split(item)
        parts = [_numbers(inside, item, where, what) for inside in rest[::2]]
        many = 1
        for part in parts:
            many *= len(part)
        if len(names) + many > MOST_NAMES:
            raise PlatformError(f"too many {what}", where=where, expected=f"at most {MOST_NAMES:,}", found=shown(text))
        for numbers in product(*parts):
            names.append(head + "".join(n + after for n, after in zip(numbers, rest[1::2], strict=True)))
    return names


class NameLists:
    """The lists of names in one file.

    Together they have at most `MOST_IN_FILE` names.
    """

    def __init__(self) -> None:
        self._left = MOST_IN_FILE

    def expanded(self, text: str, where: str, what: str = "names of nodes") -> list[str]:
        """Return the names in a list and count them.

        Raise PlatformError if the list is malformed, or if the file has too many names.
        """
        names = expanded(text, where, what)
        self.count(len(names), where)
        return names

    def count(self, names: int, where: str) -> None:
        """Add ``names`` names to the file's count, for a word such as ALL.

        Raise PlatformError if there are too many.
        """
        self._left -= names
        if self._left < 0:
            most = f"at most {MOST_IN_FILE:,}"
            raise PlatformError("the lists of the file have too many names", where=where, expected=most)


def compressed(names: Iterable[str]) -> str:
    """Return names as a sorted list in Slurm's form.

    For example, n05, n01, n02 give ``n[01-02,05]``.
    """
    groups: dict[str, list[tuple[int, str]]] = {}
    for name in set(names):
        found = _NUMBERED.fullmatch(name)
        head, digits = (found[1], found[2]) if found is not None else (name, "")
        groups.setdefault(head, []).append((int(digits) if digits else -1, digits))
    return ",".join(_group(head, groups[head]) for head in sorted(groups))


def _items(text: str, where: str, what: str) -> list[str]:
    items: list[str] = []
    at = 0
    while at < len(text):
        found = _ITEM.match(text, at)
        if found is None or (found.end() < len(text) and text[found.end()] != ","):
            raise PlatformError(
                f"{what} are malformed", where=where, expected="a list as n[01-16],g1", found=shown(text)
            )
        items.append(found[0])
        at = found.end() + 1
    return items


def _numbers(inside: str, item: str, where: str, what: str) -> list[str]:
    """Return the numbers in the brackets of a host list as texts.

    For example, ``01-02,05`` gives 01, 02 and 05.
    """
    numbers: list[str] = []
    for piece in inside.split(","):
        found = _RANGE.fullmatch(piece)
        if found is None or (found[2] is not None and int(found[2]) < int(found[1])):
            raise PlatformError(f"a range in {what} is malformed", where=where, expected="as 01-16", found=shown(item))
        first, last = int(found[1]), int(found[2] or found[1])
        if last - first >= MOST_NAMES:
            raise PlatformError(f"too many {what}", where=where, expected=f"at most {MOST_NAMES:,}", found=shown(item))
        numbers += [f"{number:0{len(found[1])}}" for number in range(first, last + 1)]
    return numbers


def _group(head: str, numbers: list[tuple[int, str]]) -> str:
    """Return names in Slurm's form.

    They begin with ``head`` and end in the given numbers. The name without a number comes first, then the ranges in the
    order of their numbers.
    """
    alone = [head] if any(not digits for _, digits in numbers) else []
    counted = sorted((number, len(digits), digits) for number, digits in numbers if digits)
    runs: list[list[str]] = []
    previous = -2
    for number, _, digits in counted:
        if number == previous + 1 and _joins(runs[-1][-1], digits):
            runs[-1][-1] = digits
        else:
            runs.append([digits, digits])
        previous = number
    if not runs:
        return ",".join(alone)
    if len(runs) == 1 and runs[0][0] == runs[0][1]:
        return ",".join([*alone, head + runs[0][0]])
    text = ",".join(first if first == last else f"{first}-{last}" for first, last in runs)
    return ",".join([*alone, f"{head}[{text}]"])


def _joins(one: str, other: str) -> bool:
    """Return whether one range can hold two consecutive numbers.

    The range is such as ``09-10``; it depends on how the numbers are written.
    """
    return len(one) == len(other) or (one[0] != "0" and other[0] != "0")

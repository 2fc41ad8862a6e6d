"""The text form of sets of units, and the errors of its parser."""

import re
from typing import Final

from pipistrelle.protocol.base.errors import PipistrelleError

#: matches a set of units as text, canonical or not; it does not detect overlaps or lo > hi
PATTERN: Final = r"^((0|[1-9][0-9]{0,14})(-(0|[1-9][0-9]{0,14}))?( (0|[1-9][0-9]{0,14})(-(0|[1-9][0-9]{0,14}))?)*)?$"

#: the largest unit number: 15 decimal digits, exact in a double
LARGEST_UNIT: Final = 10**15 - 1

#: match one interval, ``lo`` or ``lo-hi``, as groups 1 and 2
match_interval: Final = re.compile(r"(0|[1-9][0-9]{0,14})(?:-(0|[1-9][0-9]{0,14}))?").fullmatch
#: matches a complete set of units
match_set: Final = re.compile(PATTERN.replace("(", "(?:")).fullmatch
_match_digits: Final = re.compile(r"[0-9]+(?:-[0-9]+)?").fullmatch
_SHOWN: Final = 40


class NodeSetError(PipistrelleError):
    """A text or list of intervals is not a valid set of units."""


def piece_error(piece: str, number: int, position: int) -> NodeSetError:
    """Return the error for an invalid interval; number and position count from 1."""
    where = f"interval {number}, character {position}"
    shown = repr(piece if len(piece) <= _SHOWN else piece[:_SHOWN] + "...")
    what, expected = "a piece is no interval of units", "'lo' or 'lo-hi' in decimal digits"
    if not piece:
        what, expected = "an interval of a set of units is empty", "intervals separated by single spaces"
        shown = "a space too many"
    elif "," in piece:
        what, expected = "a set of units has a comma", "single spaces, as in '0-3 8-19'"
    elif match_interval(piece):
        what, expected = "an interval of units runs backwards", "lo <= hi"
    elif _match_digits(piece):
        what, expected = "a unit number is not valid", f"0 to {LARGEST_UNIT}, without leading zeros"
    return NodeSetError(what, where=where, expected=expected, found=shown)


def overlap_error(text: str, pairs: list[tuple[int, int]]) -> NodeSetError:
    """Return the error for the first interval in the text that repeats a unit."""
    pieces = text.split(" ")
    order = sorted(range(len(pairs)), key=lambda index: pairs[index])
    reaching = order[0]
    clashes = []
    for index in order[1:]:
        if pairs[index][0] <= pairs[reaching][1]:
            clashes.append((max(index, reaching), min(index, reaching)))
        if pairs[index][1] > pairs[reaching][1]:
            reaching = index
    later, earlier = min(clashes)
    return NodeSetError(
        "an interval of a set of units overlaps another",
        where=f"interval {later + 1}, character {sum(len(piece) + 1 for piece in pieces[:later]) + 1}",
        expected="each unit at most once",
        found=f"'{pieces[later]}' beside '{pieces[earlier]}'",
    )

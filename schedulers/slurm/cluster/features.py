"""Parse constraints on node features as sbatch takes them.

A constraint can have "and", "or", counts and matching sets.
"""

from typing import Final

from msgspec import Struct

_MARKS: Final = "&|()[]"
#: most digits of a number of nodes
_DIGITS: Final = 9


class Wanted(Struct, frozen=True):
    """One way to satisfy a constraint on features.

    Attributes:
        allowed: the set of nodes that the job may use.
        counts: ((set of nodes, number needed), ...) of ``feature*N``: the job needs that many nodes of each set.
    """

    allowed: int
    counts: tuple[tuple[int, int], ...] = ()


def parse_constraint(text: str, features: dict[str, int], everything: int) -> list[Wanted]:
    """Return the alternative ways to satisfy a constraint.

    They are in the order in which Slurm tries them. ``a&b`` and ``a|b`` give one way. ``[a|b]`` gives one way per
    feature, because all nodes must have the same feature. ``[a*2&b*1]`` gives a way with counts.

    Args:
        features: {feature: set of the nodes that have it}.
        everything: set of all nodes.

    Raises:
        ValueError: brackets do not match.
    """
    reader = _Reader(text, features, everything)
    ways = reader.any_of()
    if reader.at < len(reader.words):
        raise ValueError(f"constraint {text!r}: unexpected {reader.words[reader.at]!r}")
    return ways


class _Reader:
    def __init__(self, text: str, features: dict[str, int], everything: int) -> None:
        self.features = features
        self.everything = everything
        self.at = 0
        self.words: list[str] = []
        word = ""
        for letter in text.replace(" ", "").replace(",", "&"):
            if letter in _MARKS:
                if word:
                    self.words.append(word)
                word = ""
                self.words.append(letter)
            else:
                word += letter
        if word:
            self.words.append(word)

    def _peek(self) -> str:
        return self.words[self.at] if self.at < len(self.words) else ""

    def any_of(self, *, matching: bool = False) -> list[Wanted]:
        """Parse alternatives ``a|b|c``; return the ways to satisfy them.

        With ``matching`` (inside brackets), there is one way per alternative, because all nodes must match the same
        one. Otherwise, alternatives without counts become one way, in which each node may match any of them.
        """
        ways = self._all_of()
        while self._peek() == "|":
            self.at += 1
            more = self._all_of()
            if ways[0].counts or more[0].counts:
                raise ValueError("constraint: counts of features are combined with '&', not with '|'")
            if matching or len(ways) > 1 or len(more) > 1:
                ways = ways + more
            else:
                ways = [Wanted(ways[0].allowed | more[0].allowed)]
        return ways

    def _all_of(self) -> list[Wanted]:
        ways = self._one()
        while self._peek() == "&":
            self.at += 1
            more = self._one()
            ways = [self._both(one, other) for one in ways for other in more]
        return ways

    @staticmethod
    def _both(one: Wanted, other: Wanted) -> Wanted:
        if one.counts or other.counts:
            # Counts of several features: a node need have only one of them.
            allowed = one.allowed | other.allowed if one.counts and other.counts else one.allowed & other.allowed
            return Wanted(allowed, one.counts + other.counts)
        return Wanted(one.allowed & other.allowed)

    def _one(self) -> list[Wanted]:
        word = self._peek()
        if word in ("(", "["):
            self.at += 1
            ways = self.any_of(matching=word == "[")
            if self._peek() != {"(": ")", "[": "]"}[word]:
                raise ValueError(f"constraint: {word!r} is not closed")
            self.at += 1
            if self._peek().startswith("*"):  # (a&b)*N
                if len(ways) > 1 or ways[0].counts:
                    raise ValueError(f"constraint: a count may not follow {word!r} with counts or several ways")
                found = ways[0].allowed
                ways = [Wanted(found, ((found, _count(self._peek()[1:])),))]
                self.at += 1
            return ways
        if not word or word in _MARKS:
            raise ValueError(f"constraint: a feature is missing before {word!r}")
        self.at += 1
        name, star, count = word.partition("*")
        nodes = self.features.get(name, 0)
        return [Wanted(nodes, ((nodes, _count(count)),) if star else ())]


def _count(text: str) -> int:
    if not text.isdecimal() or len(text) > _DIGITS:
        raise ValueError(f"constraint: {text!r} is not a number of nodes")
    return int(text)

"""Constraints on a job's nodes, in the language of ``sbatch --constraint``."""

import re
from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from pipistrelle.platforms.errors import PlatformError
from pipistrelle.protocol.base.errors import did_you_mean, quoted
from pipistrelle.protocol.events import PoolInfo

_LONGEST: Final = 1000
_DEEPEST: Final = 50
_TOKEN: Final = re.compile(r"\s*([&|()]|[^\s&|()=,\[\]{}]+(?:\s*=\s*[^\s&|()=,\[\]{}]+)?)")
#: {key of a condition: attribute of a pool}
_ATTRIBUTES: Final = {"pool": "name", "class": "node_class", "unit": "unit"}
#: the tokens of Slurm's constraints, which may also have brackets
_SLURM_TOKEN: Final = re.compile(_TOKEN.pattern.replace("[&|()]", r"[&|()\[\]]", 1))
_COUNT: Final = re.compile(r"[1-9][0-9]{0,8}")
_FEATURES: Final = "features"
_FORM: Final = "words, KEY=VALUE, '&', '|' and parentheses, as gpu_model=a100&(nvlink|pool=big)"


class Word(Struct, frozen=True):
    """One condition on a node.

    It is ``KEY=VALUE``, or the name of a feature, with an empty key.
    """

    key: str
    value: str

    def met_by(self, pool: PoolInfo) -> bool:
        """Return whether the nodes of a pool meet the condition."""
        if not self.key:
            return self._is_feature_of(pool)
        attribute = _ATTRIBUTES.get(self.key)
        if attribute is not None:
            return bool(getattr(pool, attribute) == self.value)
        return self.key in pool.properties and _is(pool.properties[self.key], self.value)

    def _is_feature_of(self, pool: PoolInfo) -> bool:
        listed = pool.properties.get(_FEATURES)
        return (
            self.value in (pool.name, pool.node_class)
            or pool.properties.get(self.value) is True
            or any(value == self.value for value in pool.properties.values() if isinstance(value, str))
            or (isinstance(listed, str) and self.value in listed.replace(",", " ").split())
        )

    def words(self) -> Iterator["Word"]:
        """Yield this condition itself; see `Several.words`."""
        yield self

    def __str__(self) -> str:
        return f"{self.key}={self.value}" if self.key else self.value


class Several(Struct, frozen=True):
    """Several conditions on a node.

    The node must meet all of them if ``every`` is true, otherwise at least one.
    """

    parts: "tuple[Word | Several, ...]"
    every: bool

    def met_by(self, pool: PoolInfo) -> bool:
        """Return whether a pool's nodes meet the conditions.

        They must meet all if ``every`` is true, otherwise at least one.
        """
        return (all if self.every else any)(part.met_by(pool) for part in self.parts)

    def words(self) -> Iterator[Word]:
        """Yield the single conditions (`Word`) of which the constraint consists, in order."""
        for part in self.parts:
            yield from part.words()

    def __str__(self) -> str:
        sign = "&" if self.every else "|"
        return sign.join(f"({part})" if isinstance(part, Several) else str(part) for part in self.parts)


Constraint = Word | Several


class FeatureCount(Struct, frozen=True):
    """``a*2``: at least two of a job's nodes must have the feature ``a``."""

    word: Word
    count: int

    def __str__(self) -> str:
        return f"{self.word}*{self.count}"


class OneOf(Struct, frozen=True):
    """``[a|b]``: all nodes of a job must meet the same alternative."""

    parts: "tuple[Any, ...]"


def read_slurm(text: str) -> Any:
    """Parse a constraint with Slurm's brackets and counts; PlatformError if invalid."""
    return _Reader(text, slurm=True).read()


def parse_constraint(text: str) -> Constraint:
    """Parse a constraint; ``&`` binds more tightly than ``|``.

    Raises:
        PlatformError: if it cannot be parsed, or has Slurm's counts or brackets, which restrict several nodes together.
    """
    found: Constraint = _Reader(text).read()
    return found


def why_unmet(constraint: Constraint, text: str, pools: tuple[PoolInfo, ...]) -> str:
    """Return a message that says why no pool of the machine meets a constraint."""
    unknown = [word for word in dict.fromkeys(constraint.words()) if not any(word.met_by(pool) for pool in pools)]
    for word in unknown:
        if word.key == "pool":
            known_names = list(dict.fromkeys(pool.name for pool in pools))
            names = ", ".join(known_names)
            near = did_you_mean(word.value, known_names)
            known = f"did you mean {near.partition('mean ')[2]}" if near.startswith("Did") else f"there are {names}"
            return f"there is no pool {quoted(word.value)} for its constraint {quoted(text)} ({known})"
    none = f": none has {quoted(unknown[0])}" if unknown and unknown[0] != constraint else ""
    return f"no pool meets its constraint {quoted(text)}{none}"


class _Reader:
    def __init__(self, text: str, *, slurm: bool = False) -> None:
        self._text = text
        self._slurm = slurm
        self._tokens = list(self._split(text))
        self._at = 0
        self._depth = 0

    def read(self) -> Any:
        if not self._tokens:
            raise self._fault("is empty")
        found = self._one_of()
        if self._at < len(self._tokens):
            raise self._fault(f"continues after its end with {quoted(self._tokens[self._at])}")
        return found

    def _split(self, text: str) -> Iterator[str]:
        if len(text) > _LONGEST:
            raise self._fault("is too long")
        at, text = 0, text.rstrip()
        while at < len(text):
            found = (_SLURM_TOKEN if self._slurm else _TOKEN).match(text, at)
            if found is None:
                raise self._fault(f"cannot be read at {quoted(text[at:].lstrip()[:1])}")
            yield found[1]
            at = found.end()

    def _one_of(self) -> Any:
        parts = [self._all_of()]
        while self._next("|"):
            parts.append(self._all_of())
        return parts[0] if len(parts) == 1 else Several(tuple(parts), every=False)

    def _all_of(self) -> Any:
        parts = [self._part()]
        while self._next("&"):
            parts.append(self._part())
        return parts[0] if len(parts) == 1 else Several(tuple(parts), every=True)

    def _part(self) -> Any:
        if self._next("("):
            self._depth += 1
            if self._depth > _DEEPEST:
                raise self._fault("has too many parentheses")
            inner = self._one_of()
            if not self._next(")"):
                raise self._fault("has a parenthesis that is not closed")
            self._depth -= 1
            return inner
        if self._slurm and self._next("["):
            inner = self._one_of()
            if not self._next("]"):
                raise self._fault("has a bracket that is not closed")
            alternatives = isinstance(inner, Several) and not inner.every
            return OneOf(inner.parts if alternatives else (inner,))
        if self._at == len(self._tokens) or self._tokens[self._at] in "&|)]":
            raise self._fault("lacks a word")
        key, equals, value = self._tokens[self._at].partition("=")
        self._at += 1
        if "*" in key + value:
            return self._counted(key, equals, value)
        return Word(key.strip(), value.strip()) if equals else Word("", key)

    def _counted(self, key: str, equals: str, value: str) -> FeatureCount:
        if not self._slurm:
            raise self._fault("counts nodes, which is not supported")
        name, _, count = (value if equals else key).partition("*")
        if not name.strip() or not _COUNT.fullmatch(count):
            raise self._fault("counts nodes, but not as a*2")
        return FeatureCount(Word(key.strip(), name.strip()) if equals else Word("", name), int(count))

    def _next(self, token: str) -> bool:
        if self._at < len(self._tokens) and self._tokens[self._at] == token:
            self._at += 1
            return True
        return False

    def _fault(self, what: str) -> PlatformError:
        return PlatformError(f"the constraint {what}", expected=_FORM, found=quoted(self._text))


def _is(known: str | int | float | bool, value: str) -> bool:
    if isinstance(known, str):
        return known == value
    if isinstance(known, bool):
        return value == ("true" if known else "false")
    try:
        return known == (int(value) if isinstance(known, int) and value.lstrip("+-").isdecimal() else float(value))
    except ValueError:
        return False

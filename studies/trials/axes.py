"""The axes of a study, and all combinations of their values.

Axes are the options that the study varies.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

import msgspec
from msgspec.structs import fields

from pipistrelle.protocol.base.errors import did_you_mean, printable, shown
from pipistrelle.protocol.base.lengths import parse_seconds
from pipistrelle.runs.description.spec import Decides, RunSpec, decided
from pipistrelle.studies.errors import StudyError

#: {name: option of a run}
OPTIONS: Final = {one.encode_name: one for one in fields(RunSpec)}
_NO_PART_OF_A_TRIAL: Final = {
    Decides.DIALECT: "trials run in one process and speak no dialect",
    Decides.OUTPUTS: "trials have no outputs",
    Decides.CHECK: "digests are taken by the study itself",
}
#: {option that trials cannot have: reason}
REFUSED: Final = {"resumed": "a trial starts from the beginning"} | {
    one.encode_name: why for one in fields(RunSpec) if (why := _NO_PART_OF_A_TRIAL.get(decided()[one.name]))
}
#: significant digits of values inside a range: few enough that all platforms' math libraries agree
_DIGITS: Final = 6
_MOST_VALUES: Final = 100_000
#: option that is a table of changes of a Slurm configuration; ``slurm.KEY`` sets one of them
_SLURM: Final = "slurm"
#: {option: its column in the results}, if the names differ
_COLUMNS: Final = {"scheduler": "policy"}


class _Range(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A range of numbers or times in a study's file.

    It has ``count`` values, or values at distance ``step``.
    """

    first: float | str = msgspec.field(name="from")
    last: float | str = msgspec.field(name="to")
    step: float | str | None = None
    count: int | None = None
    scale: str = "linear"


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of a study: its name, and the run options of each value.

    Attributes:
        name: the name in the study's description.
        settings: for each value, {option: plain value}.
        labels: a name for each value, which becomes a column of the results; None if the options' values suffice.
    """

    name: str
    settings: tuple[Mapping[str, Any], ...]
    labels: tuple[str, ...] | None = None

    @property
    def options(self) -> list[str]:
        """All options that the axis sets, in order."""
        return list(dict.fromkeys(option for setting in self.settings for option in setting))


def read_axes(raw: Mapping[str, Any], where: str) -> tuple[Axis, ...]:
    """Return the axes of a study.

    Raise StudyError if one is empty, unknown or repeated.
    """
    axes = tuple(_axis(name, value, f"{where}: axes.{printable(name)}") for name, value in _flat(raw))
    owners: dict[str, str] = {}
    for axis in axes:
        for option in axis.options:
            if owners.setdefault(option, axis.name) != axis.name:
                raise StudyError(
                    f"two axes set the option '{option}'",
                    where=f"{where}: axes.{printable(axis.name)}",
                    found=f"axes.{printable(owners[option])} sets it, too",
                )
    return axes


def _flat(raw: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield (name, values) of each axis, with the axes in nested tables.

    The key of a nested table becomes, for example, ``slurm.partition.debug.MaxTime``.
    """
    for name, value in raw.items():
        if name == _SLURM or name.startswith(f"{_SLURM}."):
            yield from _leaves(name, value)
        else:
            yield name, value


def _leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and not {"from", "to"} <= value.keys():
        for key, inner in value.items():
            yield from _leaves(f"{name}.{key}", inner)
    else:
        yield name, value


def folded(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a run with a table ``slurm``.

    All options ``slurm.KEY`` are moved into this table.
    """
    found = {name: value for name, value in settings.items() if not name.startswith(f"{_SLURM}.")}
    changes = {
        name.removeprefix(f"{_SLURM}."): value for name, value in settings.items() if name.startswith(f"{_SLURM}.")
    }
    return {**found, _SLURM: {**found.get(_SLURM, {}), **changes}} if changes else found


def points(axes: Sequence[Axis]) -> Iterator[tuple[int, ...]]:
    """Yield each combination of axis values as the index of the value on each axis.

    The last axis varies fastest.
    """
    return product(*(range(len(axis.settings)) for axis in axes))


def column_of(option: str) -> str:
    """Return the column name of an option or axis."""
    return _COLUMNS.get(option, option.replace("-", "_").replace(" ", "_"))


def check_option(name: str, where: str) -> None:
    """Raise StudyError unless trials can have the option ``name``.

    Options such as ``slurm.KEY`` are checked later, with the run.
    """
    if name.startswith(f"{_SLURM}."):
        return
    if name not in OPTIONS:
        hint = f"{did_you_mean(name, list(OPTIONS))} Axes have the names of options of 'pipistrelle run'."
        raise StudyError(f"a run has no option {shown(name)}", where=where, hint=hint.strip())
    if name in REFUSED:
        raise StudyError(f"a study does not support '{name}': {REFUSED[name]}", where=where)


def _axis(name: str, value: Any, where: str) -> Axis:
    tables = isinstance(value, list) and value and all(isinstance(one, dict) and "step" not in one for one in value)
    if tables and not (name in OPTIONS and OPTIONS[name].default_factory is dict):
        return _variants(name, value, where)
    options = [part.strip() for part in name.split(",")]
    for option in options:
        check_option(option, where)
    values = _values(value, where)
    if not values:
        raise StudyError(
            "the axis has no values", where=where, expected=f"at least one, such as {name} = [1, 4]", found="none"
        )
    texts = [repr(one) for one in values]  # unlike the values, texts of NaN are equal
    if len(set(texts)) < len(texts):
        twice = next(one for place, one in enumerate(values) if texts[place] in texts[:place])
        raise StudyError("a value occurs twice", where=where, found=shown(twice))
    if len(options) == 1:
        return Axis(name, tuple({name: one} for one in values))
    for one in values:
        if not isinstance(one, list) or len(one) != len(options):
            raise StudyError(
                "options that change together need one value each",
                where=where,
                expected=f"lists of {len(options)}, for {name}",
                found=shown(one) if not isinstance(one, list) else f"a list of {len(one)}",
            )
    return Axis(name, tuple(dict(zip(options, one, strict=True)) for one in values))


def _variants(name: str, tables: list[dict[str, Any]], where: str) -> Axis:
    """Return an axis whose values are named sets of options, such as policies."""
    if name in OPTIONS:
        check_option(name, where)
        raise StudyError(
            f"'{name}' is an option, but these are tables", where=where, expected="a new name, such as [[axes.load]]"
        )
    labels: list[str] = []
    settings: list[Mapping[str, Any]] = []
    for number, table in enumerate(tables):
        here = f"{where}[{number}]"
        label = table.get("name")
        if not isinstance(label, str) or not label or label in labels:
            what = "two variants have the same name" if label in labels else "a variant has no name"
            raise StudyError(what, where=here, expected='a unique name = "TEXT"', found=shown(label or "none"))
        setting = {option: value for option, value in table.items() if option != "name"}
        for option in setting:
            check_option(option, here)
        labels.append(label)
        settings.append(setting)
    return Axis(name, tuple(settings), tuple(labels))


def _values(value: Any, where: str) -> list[Any]:
    if isinstance(value, dict):
        try:
            return _spread(msgspec.convert(value, _Range), where)
        except msgspec.ValidationError as error:
            raise StudyError(
                "a range cannot be read",
                where=where,
                expected="{from = 1, to = 9, step = 2}, or {from = ..., to = ..., count = 5, scale = 'log'}",
                found=printable(str(error))[:120],
            ) from None
    return value if isinstance(value, list) else [value]


def _spread(told: _Range, where: str) -> list[Any]:
    """Return the values that a range of a study's file stands for.

    Inner values are rounded to six significant digits.
    """
    kinds = {isinstance(one, str) for one in (told.first, told.last, told.step) if one is not None}
    if len(kinds) > 1:
        raise StudyError("a range mixes numbers and lengths of time", where=where)
    timed = kinds == {True}
    first, last = (_number(one) for one in (told.first, told.last))
    if told.scale not in ("linear", "log"):
        raise StudyError(
            "a range's scale is unknown", where=where, expected="'linear' or 'log'", found=shown(told.scale)
        )
    if (told.step is None) == (told.count is None):
        raise StudyError("a range needs either a step or a count", where=where, expected="one of the two")
    if told.step is not None:
        step = _number(told.step)
        if told.scale == "log":
            raise StudyError("a range on a log scale needs a count, not a step", where=where)
        if not step or (last - first) / step < 0 or not math.isfinite(step):
            raise StudyError("a range never ends", where=where, found=f"from {first:g} by {step:g}")
        count = math.floor((last - first) / step * (1 + 1e-12)) + 1
        inner = [first + number * step for number in range(min(count, _MOST_VALUES + 1))]
        ends = len(inner) - 1 if _settled(inner[-1]) == _settled(last) else len(inner)
    else:
        assert told.count is not None
        count = told.count
        if count < 2:
            raise StudyError("a range has two ends", where=where, expected="a count of at least 2", found=str(count))
        if told.scale == "log" and not (first > 0 and last > 0):
            raise StudyError("a log scale has no zero", where=where, expected="both ends above 0")
        shares = [number / (count - 1) for number in range(min(count, _MOST_VALUES + 1))]
        if told.scale == "log":
            inner = [math.exp(math.log(first) * (1 - share) + math.log(last) * share) for share in shares]
        else:
            inner = [first * (1 - share) + last * share for share in shares]
        ends = count - 1
    if count > _MOST_VALUES:
        raise StudyError(f"an axis has more than {_MOST_VALUES:,} values", where=where, found=f"{count:,}")
    values = [_plain(_settled(one), timed) for one in inner]
    values[0] = told.first
    if ends < len(values):
        values[ends] = told.last
    return [int(one) if isinstance(one, float) and one.is_integer() else one for one in values]


def _number(value: float | str) -> float:
    return parse_seconds(value, or_zero=True) if isinstance(value, str) else float(value)


def _settled(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def _plain(value: float, timed: bool) -> float | str:
    if not timed:
        return value
    return f"{int(value) if value.is_integer() else value}s"

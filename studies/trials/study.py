"""A study as it is described: what is run, what is varied of it, how often it is repeated, what is measured."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
import numpy as np
from msgspec import Meta, Struct
from msgspec.structs import replace

from pipistrelle.models.samples.estimates import StatisticsError
from pipistrelle.models.samples.stopping import LEAST, Rule
from pipistrelle.protocol.base.errors import printable
from pipistrelle.protocol.base.lengths import UNITS, seconds_of
from pipistrelle.protocol.base.shapes import misfit
from pipistrelle.protocol.base.toml import read_toml
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.description.spec_file import SpecError, convert_spec
from pipistrelle.studies.trials.axes import Axis, StudyError, check_option, column_of, points, read_axes
from pipistrelle.studies.trials.window import NOTHING, Leave
from pipistrelle.traces.files import read_text

MANUAL: Final = "'pipistrelle help studies' describes the file."
#: bits of a trial's seed: any program that reads numbers as doubles reads it exactly
_SEED_BITS: Final = 53
#: last letters of the units of time
_TIMED: Final = frozenset(unit[-1] for unit in UNITS)
#: replicas of a point, whatever precision is asked for
_AT_MOST: Final = 1000
_MOST_TRIALS: Final = 100_000_000
#: columns that every study has, whether they are varied or not
_ALWAYS: Final = ("scheduler", "workload", "platform", "reliability-factor", "repair")

Engine = Literal["auto", "reference", "kernel"]
#: a value of a column that says what a trial was
Label = str | int | float | bool | None


class Replicas(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """How often each combination is repeated, with other random numbers each time.

    Parameters
    ----------
    count
        so often; None: once, or as often as ``precision`` needs.
    precision
        until the half-width of the 95 % interval of the mean of ``metric`` is at most this share of it, as ``2%``.
    at_most
        with `precision`: no more replicas than these, 1000 if nothing is said.
    metric
        with `precision`: what is to be that precise, ``mean_wait`` if nothing is said.
    seed
        of the study; a trial's random numbers depend on it and the replica alone.
    """

    count: Annotated[int, Meta(ge=1)] | None = None
    precision: str | float | None = None
    at_most: Annotated[int, Meta(ge=2)] | None = None
    metric: str | None = None
    seed: Annotated[int, Meta(ge=0)] = 1


class Measures(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """What is measured of each trial.

    Parameters
    ----------
    warm_up, drain
        what is left out at a trial's begin and end: a length of time as ``30d``, or ``1000 jobs``.
    sizes
        lower bounds of classes of jobs by size, ascending, of which means are told, too.
    """

    warm_up: str | None = None
    drain: str | None = None
    sizes: tuple[Annotated[int, Meta(ge=1)], ...] = ()

    @property
    def left_out(self) -> tuple[Leave, Leave]:
        """What both ends leave out; WindowError if a text cannot be read."""
        warm_up = NOTHING if self.warm_up is None else Leave.parse(self.warm_up, "metrics.warm-up")
        return warm_up, NOTHING if self.drain is None else Leave.parse(self.drain, "metrics.drain")


class _StudyFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    run: dict[str, Any] = {}
    axes: dict[str, Any] = {}
    replicas: Replicas = Replicas()
    metrics: Measures = Measures()
    engine: Engine = "auto"


@dataclass(frozen=True, slots=True)
class Point:
    """One combination of values of all axes.

    Parameters
    ----------
    number
        its place in the grid.
    spec
        the run that it is, but for the seed.
    labels
        {column: value} that tell it from others; a column of lengths of time has a second one, in seconds.
    settings
        the options that the axes set, as the study has them.
    drawing
        the steps of its transformation whose seeds are the replica's: they draw, and their seed is not said.
    """

    number: int
    spec: RunSpec
    labels: dict[str, Label]
    settings: Mapping[str, Any]
    drawing: tuple[int, ...] = ()


class Study:
    """What a study is; equal descriptions give equal results, to the byte.

    Parameters
    ----------
    run
        options of all its runs by their names on the command line, as ``{"workload": "demo"}``.
    axes
        {option: its values}: a list, a range as ``{"from": 1, "to": 16, "count": 5, "scale": "log"}``, for
        ``"checkpoint,dump"`` a list of pairs, or for a name of one's own a list of tables of options, each with a
        ``name``.
    replicas
        how often each combination is repeated: a number, or the table of a study's file.
    metrics
        what is measured, as the table of a study's file.
    engine
        ``auto`` takes the compiled kernel where it can do what is asked, ``reference`` never, ``kernel`` or an error.
    where
        what the study is called in messages.

    Raises
    ------
    PipistrelleError
        if anything of it is wrong that can be seen without reading other files.
    """

    def __init__(
        self,
        run: Mapping[str, Any] | None = None,
        axes: Mapping[str, Any] | None = None,
        replicas: int | Mapping[str, Any] = 1,
        metrics: Mapping[str, Any] | None = None,
        engine: Engine = "auto",
        *,
        where: str = "the study",
    ) -> None:
        self.where = where
        raw = {
            "run": {} if run is None else dict(run),
            "axes": {} if axes is None else dict(axes),
            "replicas": {"count": replicas} if isinstance(replicas, int) else dict(replicas),
            "metrics": {} if metrics is None else dict(metrics),
            "engine": engine,
        }
        try:
            told = msgspec.convert(raw, _StudyFile)
        except msgspec.ValidationError as error:
            raise misfit(error, raw, _StudyFile, where, StudyError, MANUAL) from None
        self.run, self.replicas, self.metrics = told.run, told.replicas, told.metrics
        self.engine: Engine = told.engine
        for name in self.run:
            check_option(name, f"{where}: run")
        self.axes: tuple[Axis, ...] = read_axes(told.axes, where)
        self._raw_axes = told.axes
        self._check()

    @classmethod
    def read(cls, path: str | Path) -> "Study":
        """Return the study that a TOML file describes; PipistrelleError if it cannot be read, or is wrong."""
        where = printable(str(path))
        raw = read_toml(read_text(Path(path)), where, StudyError, manual=MANUAL, hint="Texts need quotes.")
        try:
            told = msgspec.convert(raw, _StudyFile)
        except msgspec.ValidationError as error:
            raise misfit(error, raw, _StudyFile, where, StudyError, MANUAL) from None
        plain = {name: value for name, value in raw.items() if name in ("metrics", "replicas")}
        plain.setdefault("replicas", {})
        return cls(told.run, told.axes, engine=told.engine, where=where, **plain)

    def _check(self) -> None:
        where, varied = self.where, {option for axis in self.axes for option in axis.options}
        for option in varied & self.run.keys():
            raise StudyError(f"'{option}' is varied and said of all runs, too", where=f"{where}: run")
        told = self.replicas
        if "seed" in self.run:
            raise StudyError(
                "the random numbers of a study are told by its replicas",
                where=f"{where}: run.seed",
                hint="Write seed into [replicas], or make seeds an axis.",
            )
        if told.count is not None and told.precision is not None:
            raise StudyError("replicas have a count or a precision, not both", where=f"{where}: replicas")
        if told.precision is None and (told.at_most is not None or told.metric is not None):
            name = "at-most" if told.at_most is not None else "metric"
            raise StudyError(f"'{name}' goes with a precision", where=f"{where}: replicas")
        if self.seeds_varied and (told.precision is not None or self.count > 1):
            raise StudyError(
                "seeds are an axis, so that a replica would be the same again",
                where=f"{where}: replicas",
                expected="count = 1",
                found="a precision" if told.count is None else f"count = {told.count}",
            )
        for one, name in zip(self.metrics.left_out, ("warm-up", "drain"), strict=True):
            if one == NOTHING and getattr(self.metrics, name.replace("-", "_")) is not None:
                raise StudyError("nothing is left out", where=f"{where}: metrics.{name}", hint="Leave the line out.")
        _ = self.rule
        sizes = self.metrics.sizes
        if list(sizes) != sorted(set(sizes)):
            raise StudyError("bounds of sizes ascend", where=f"{where}: metrics.sizes", found=str(list(sizes)))
        if (count := self.size * self.count) > _MOST_TRIALS:
            raise StudyError(f"a study has at most {_MOST_TRIALS:,} trials", where=where, found=f"{count:,}")

    @property
    def count(self) -> int:
        """How many replicas each point has, at least: 1 if their number follows from a precision."""
        return self.replicas.count or 1

    @property
    def metric(self) -> str:
        """What is to be as precise as asked."""
        return self.replicas.metric or "mean_wait"

    @property
    def rule(self) -> Rule | None:
        """When the replicas of a point are enough; None if they are counted."""
        told = self.replicas
        if told.precision is None:
            return None
        text = str(told.precision)
        try:
            share = float(text[:-1]) / 100 if text.endswith("%") else float(text)
            return Rule(precision=share, least=min(LEAST, told.at_most or LEAST), most=told.at_most or _AT_MOST)
        except (ValueError, StatisticsError):
            raise StudyError(
                "a precision is a share of the mean",
                where=f"{self.where}: replicas.precision",
                expected="as '2%' or 0.02",
                found=f"'{printable(text)}'",
            ) from None

    @property
    def size(self) -> int:
        """The number of points."""
        size = 1
        for axis in self.axes:
            size *= len(axis.settings)
        return size

    @property
    def varied(self) -> list[str]:
        """What tells its points apart: the names of axes that have names of their own, and the options that are set."""
        names: dict[str, None] = {}
        for axis in self.axes:
            if axis.labels is not None:
                names[axis.name] = None
            names |= dict.fromkeys(axis.options)
        return list(names)

    @property
    def seeds_varied(self) -> bool:
        """Whether seeds are an axis."""
        return any("seed" in axis.options for axis in self.axes)

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """All combinations, in order; SpecError, which names one, if it is no run."""
        found: list[Point] = []
        for number, places in enumerate(points(self.axes)):
            settings: dict[str, Any] = {}
            labels: dict[str, Label] = {}
            for axis, place in zip(self.axes, places, strict=True):
                settings |= axis.settings[place]
                if axis.labels is not None:
                    labels[column_of(axis.name)] = axis.labels[place]
            where = f"{self.where}: {combination(settings)}" if settings else self.where
            spec = convert_spec({**self.run, **settings}, where)
            if spec.program is not None:
                raise SpecError(
                    "a trial calls its scheduler directly, so it cannot be a program",
                    where=where,
                    expected="the name of a scheduler, FILE.toml or FILE.py:OBJECT",
                )
            values = msgspec.to_builtins(spec)
            for option in dict.fromkeys([*_ALWAYS, *settings]):
                if option != "seed" and _is_label(value := settings.get(option, values[option])):
                    labels[column_of(option)] = _label(value)
            found.append(Point(number, spec, labels, settings, _drawing(spec, {**self.run, **settings})))
        for column in list(found[0].labels):
            seconds = [_seconds(point.labels.get(column)) for point in found]
            if None not in seconds:
                for point, value in zip(found, seconds, strict=True):
                    point.labels[f"{column}_seconds"] = value
        return tuple(found)

    def spec_of(self, point: Point, replica: int, *, seeded: bool) -> RunSpec:
        """Return the run that a trial is; ``seeded`` tells whether something of what happens to it is drawn."""
        seed = self.seed_of(point, replica)
        spec = replace(point.spec, seed=seed) if seeded else point.spec
        if not point.drawing or self.seeds_varied:
            return spec
        steps = [
            replace(step, seed=seed + 1 + number) if number in point.drawing else step
            for number, step in enumerate(spec.transform)
        ]
        return replace(spec, transform=tuple(steps))

    def seed_of(self, point: Point, replica: int) -> int:
        """Return the seed of a trial: that of its axis, or one that depends on the study's and the replica alone."""
        if self.seeds_varied:
            return point.spec.seed
        low, high = np.random.SeedSequence([self.replicas.seed, replica]).generate_state(2).tolist()
        return int((high << 32 | low) & (1 << _SEED_BITS) - 1)

    @property
    def identity(self) -> dict[str, Any]:
        """What decides the results apart from how many replicas there are, in plain values: axes in their order."""
        return {
            "run": self.run,
            "axes": [[name, value] for name, value in self._raw_axes.items()],
            "metrics": msgspec.to_builtins(self.metrics),
            "engine": self.engine,
            "seed": self.replicas.seed,
        }


def _drawing(spec: RunSpec, settings: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the steps that draw, of those whose seed is not said."""
    told = settings.get("transform", ())
    return tuple(
        number
        for number, (step, said) in enumerate(zip(spec.transform, told, strict=True))
        if step.draws and "seed" not in said
    )


def _seconds(value: Label) -> float | None:
    """Return the length of time that a label is, in seconds; None if it is none."""
    if not isinstance(value, str) or value.strip()[-1:] not in _TIMED:
        return None
    try:
        return seconds_of(value)
    except ValueError:
        return None


def combination(settings: Mapping[str, Any]) -> str:
    """Return what a point is called in messages."""
    return ", ".join(f"{name} {_text(value)}" for name, value in settings.items())


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else str(value)
    return printable(text if len(text) <= 40 else f"{text[:37]}...")


def _is_label(value: Any) -> bool:
    plain = str | int | float | bool | None
    return isinstance(value, plain) or (isinstance(value, list | tuple) and all(isinstance(one, str) for one in value))


def _label(value: Any) -> Label:
    return " ".join(value) if isinstance(value, list | tuple) else value

"""The description of a study: the run, its axes, replicas and metrics."""

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
from pipistrelle.studies.errors import StudyError
from pipistrelle.studies.measures.measures import Measures
from pipistrelle.studies.trials.axes import Axis, check_option, column_of, folded, points, read_axes
from pipistrelle.studies.trials.objects import Objects
from pipistrelle.traces.files import read_text

MANUAL: Final = "See 'pipistrelle help studies'."
#: number of bits of a trial's seed, so that a double holds it exactly
_SEED_BITS: Final = 53
#: the last letters of units of time
_TIMED: Final = frozenset(unit[-1] for unit in UNITS)
#: default maximum of replicas per point with a precision
_AT_MOST: Final = 1000
_MOST_TRIALS: Final = 100_000_000
#: the options of a trial that fills a cluster with pods
FILL_OPTIONS: Final = ("workload", "platform", "placement", "until", "seed")
#: columns that the results of every study have
_ALWAYS: Final = ("scheduler", "workload", "platform", "reliability-factor", "repair")

Engine = Literal["auto", "reference", "kernel", "fill"]
#: a value in a column that describes a trial
Label = str | int | float | bool | None


class Replicas(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """How often each combination is repeated with different random numbers.

    Attributes:
        count: number of replicas; None for one replica, or for as many as ``precision`` needs.
        precision: repeat until the 95 % interval of the mean of ``metric`` has a half-width of at most this share of
            the mean, such as ``2%``.
        at_most: maximum number of replicas with ``precision``; default 1000.
        metric: the metric that ``precision`` judges; default ``mean_wait``.
        seed: a trial's random numbers depend only on this seed and the replica's number.
    """

    count: Annotated[int, Meta(ge=1)] | None = None
    precision: str | float | None = None
    at_most: Annotated[int, Meta(ge=2)] | None = None
    metric: str | None = None
    seed: Annotated[int, Meta(ge=0)] = 1


class _StudyFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    run: dict[str, Any] = {}
    axes: dict[str, Any] = {}
    replicas: Replicas = Replicas()
    metrics: Measures = Measures()
    engine: Engine = "auto"


@dataclass(frozen=True, slots=True)
class Point:
    """One combination of the values of all axes (varied options) of a study.

    Attributes:
        number: index in the grid.
        spec: the run, without the replica's seed.
        labels: {column: value} that describe the point; a column of times has a second column in seconds.
        name: the value of each axis, for errors, such as ``log KTH, scheduler easy``.
        drawing: indices of random transformation steps without a seed; they get a seed from the replica.
    """

    number: int
    spec: RunSpec
    labels: dict[str, Label]
    name: str
    drawing: tuple[int, ...] = ()


class Study:
    """The description of a study; equal descriptions give byte-identical results.

    Args:
        run: options of all runs, such as ``{"workload": "demo"}``. A scheduler, a workload or a platform may be a
            Python object.
        axes: {option: values}, where values are a list, or a range such as ``{"from": 1, "to": 16, "count": 5, "scale":
            "log"}``. The key ``"checkpoint,dump"`` takes a list of pairs. A key that names no option takes a list of
            tables of options, each with a ``name``.
        replicas: number of replicas, or the table ``replicas`` of a study's file.
        metrics: the table ``metrics`` of a study's file.
        engine: ``auto`` uses the kernel if possible, ``reference`` never uses it; ``kernel`` raises an error if the
            kernel cannot run a trial. With ``fill``, trials are not runs: each fills a cluster of GPU nodes with pods.
        where: the study's name in errors.

    Raises:
        PipistrelleError: the description is wrong. Errors that need other files to be read are found later.
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
        check_tables(
            where, run=run, axes=axes, replicas=None if isinstance(replicas, int) else replicas, metrics=metrics
        )
        #: the Python objects of the description
        self.objects = Objects()
        raw = {
            "run": {} if run is None else self.objects.named(run),
            "axes": {} if axes is None else self.objects.named(axes),
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
        """Read the study in a TOML file.

        Raise PipistrelleError if the file is unreadable or wrong.
        """
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
            raise StudyError(f"'{option}' is both varied and set for all runs", where=f"{where}: run")
        told = self.replicas
        if "seed" in self.run:
            raise StudyError(
                "a study's random numbers are set by its replicas",
                where=f"{where}: run.seed",
                hint="Move seed to [replicas], or make it an axis.",
            )
        if told.count is not None and told.precision is not None:
            raise StudyError("replicas have a count or a precision, not both", where=f"{where}: replicas")
        if told.precision is None and (told.at_most is not None or told.metric is not None):
            name = "at-most" if told.at_most is not None else "metric"
            raise StudyError(f"'{name}' requires a precision", where=f"{where}: replicas")
        if self.seeds_varied and (told.precision is not None or self.count > 1):
            raise StudyError(
                "seeds are an axis, so replicas would be equal",
                where=f"{where}: replicas",
                expected="count = 1",
                found="a precision" if told.count is None else f"count = {told.count}",
            )
        self._check_names()
        self._check_fill()
        self.metrics.check(f"{where}: metrics")
        _ = self.rule
        if (count := self.size * self.count) > _MOST_TRIALS:
            raise StudyError(f"a study has at most {_MOST_TRIALS:,} trials", where=where, found=f"{count:,}")

    def _check_fill(self) -> None:
        """Raise StudyError if a study of fills has parts that fills do not support.

        A fill is a trial with the engine ``fill``.


        """
        if not self.fills:
            return
        for option in dict.fromkeys([*self.run, *(name for axis in self.axes for name in axis.options)]):
            if option not in FILL_OPTIONS:
                raise StudyError(
                    "a study that fills a cluster does not have this option",
                    where=f"{self.where}: {printable(option)}",
                    expected=f"one of {', '.join(FILL_OPTIONS)}",
                )
        if self.metrics != Measures() or self.objects:
            raise StudyError(
                "a study that fills a cluster has its own metrics, and reads files",
                where=self.where,
                hint="Remove [metrics], and give names of files.",
            )

    @property
    def fills(self) -> bool:
        """Whether each trial fills a cluster with pods instead of simulating a run."""
        return self.engine == "fill"

    def _check_names(self) -> None:
        """Raise StudyError if different objects on an axis have the same name."""
        for axis in self.axes if self.objects else ():
            labels = [repr({name: self.objects.label(value) for name, value in one.items()}) for one in axis.settings]
            if axis.labels is None and len(set(labels)) < len(labels):
                raise StudyError(
                    "two Python objects have the same name",
                    where=f"{self.where}: axes.{printable(axis.name)}",
                    expected="a name of its own for each",
                    hint='Set their attribute "name", or use an axis of tables, each with a "name".',
                )

    @property
    def count(self) -> int:
        """Return the minimum number of replicas per point.

        Return 1 if a precision is requested instead.
        """
        return self.replicas.count or 1

    @property
    def metric(self) -> str:
        """Return the metric whose mean must have the requested precision."""
        return self.replicas.metric or ("allocated_100" if self.fills else "mean_wait")

    @property
    def rule(self) -> Rule | None:
        """Return the rule that says when a point has enough replicas.

        Return None if their number is fixed.
        """
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
                expected="such as '2%' or 0.02",
                found=f"'{printable(text)}'",
            ) from None

    @property
    def size(self) -> int:
        """Return the number of points (combinations of axis values)."""
        size = 1
        for axis in self.axes:
            size *= len(axis.settings)
        return size

    @property
    def varied(self) -> list[str]:
        """The names that distinguish points: axes of variants, and options of other axes.

        A variant is a named set of options. The options that it sets follow from its name, so they are not included.
        """
        names: dict[str, None] = {}
        for axis in self.axes:
            names |= dict.fromkeys(axis.options if axis.labels is None else [axis.name])
        return list(names)

    @property
    def seeds_varied(self) -> bool:
        """Return whether the random seed is an axis of the study."""
        return any("seed" in axis.options for axis in self.axes)

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """Return all points in order.

        Raise SpecError, which quotes the point's values, if a point is not a valid run.
        """
        found: list[Point] = []
        for number, places in enumerate(points(self.axes)):
            settings: dict[str, Any] = {}
            labels: dict[str, Label] = {}
            chosen: dict[str, Any] = {}
            for axis, place in zip(self.axes, places, strict=True):
                settings |= axis.settings[place]
                if axis.labels is None:
                    chosen |= axis.settings[place]
                else:
                    labels[column_of(axis.name)] = chosen[axis.name] = axis.labels[place]
            name = ", ".join(f"{option} {_text(value)}" for option, value in chosen.items())
            where = f"{self.where}: {name}" if name else self.where
            spec = convert_spec(folded({**self.run, **settings}), where)
            if spec.program is not None:
                raise SpecError(
                    "a trial calls its scheduler directly, so it cannot be a program",
                    where=where,
                    expected="the name of a scheduler, FILE.toml or FILE.py:OBJECT",
                )
            values = msgspec.to_builtins(spec)
            variants = set(labels)  # an axis of variants may have the name of a column, such as policy
            for option in dict.fromkeys([*(FILL_OPTIONS if self.fills else _ALWAYS), *settings]):
                if (
                    option != "seed"
                    and column_of(option) not in variants
                    and _is_label(value := settings.get(option, values.get(option)))
                ):
                    texts = [self.objects.label(one) for one in (value if isinstance(value, list | tuple) else [value])]
                    labels[column_of(option)] = " ".join(texts) if isinstance(value, list | tuple) else texts[0]
            found.append(Point(number, spec, labels, name, _drawing(spec, {**self.run, **settings})))
        for column in list(found[0].labels):
            seconds = [_seconds(point.labels.get(column)) for point in found]
            if None not in seconds:
                for point, value in zip(found, seconds, strict=True):
                    point.labels[f"{column}_seconds"] = value
        return tuple(found)

    def spec_of(self, point: Point, replica: int, *, seeded: bool) -> RunSpec:
        """Return the description of a trial's run.

        ``seeded`` says whether its failures are random.
        """
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
        """Return a trial's seed.

        If seeds are an axis, this is the point's value; else it is made from the study's seed and the replica.
        """
        if self.seeds_varied:
            return point.spec.seed
        low, high = np.random.SeedSequence([self.replicas.seed, replica]).generate_state(2).tolist()
        return int((high << 32 | low) & (1 << _SEED_BITS) - 1)

    @property
    def identity(self) -> dict[str, Any]:
        """Return everything that determines the study's results, as plain values.

        The number of replicas is not included.
        """
        return {
            "run": self.run,
            "axes": [[name, value] for name, value in self._raw_axes.items()],
            "metrics": self.metrics.plain(),
            "engine": self.engine,
            "seed": self.replicas.seed,
        } | ({"objects": self.objects.digests} if self.objects else {})


def check_tables(where: str, **tables: object) -> None:
    """Raise StudyError if an argument of a study is not a table.

    A table is None or a mapping with text keys.
    """
    for name, table in tables.items():
        if table is not None and not isinstance(table, Mapping):
            number = "a whole number or " if name == "replicas" else ""
            raise StudyError(
                f"{name}: an invalid value", where=where, expected=f"{number}a dictionary", found=printable(repr(table))
            )
        for key in table or ():
            if not isinstance(key, str):
                raise StudyError(f"{name}: a key is not text", where=where, found=printable(repr(key)))


def _drawing(spec: RunSpec, settings: Mapping[str, Any]) -> tuple[int, ...]:
    told = settings.get("transform", ())
    return tuple(
        number
        for number, (step, said) in enumerate(zip(spec.transform, told, strict=True))
        if step.draws and "seed" not in said
    )


def _seconds(value: Label) -> float | None:
    """Return an axis value in seconds if it is a duration, else None."""
    if not isinstance(value, str) or value.strip()[-1:] not in _TIMED:
        return None
    try:
        return seconds_of(value)
    except ValueError:
        return None


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else str(value)
    return printable(text if len(text) <= 40 else f"{text[:37]}...")


def _is_label(value: Any) -> bool:
    plain = str | int | float | bool | None
    return isinstance(value, plain) or (isinstance(value, list | tuple) and all(isinstance(one, str) for one in value))

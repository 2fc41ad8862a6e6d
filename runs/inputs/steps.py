"""Steps that change a workload, for the command line and a run's description."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal

from msgspec import Meta, Struct
from msgspec.structs import fields

from pipistrelle.models.workloads import FIELDS
from pipistrelle.traces.logs.kinds import Units as LogUnits

# Imported late, because most runs do not change their workload.
if TYPE_CHECKING:
    import numpy as np

    from pipistrelle.protocol.base.errors import InputError
    from pipistrelle.traces.transforms.join import Align
    from pipistrelle.traces.workload import Workload

Seed = Annotated[int, Meta(ge=0)]
Count = Annotated[int, Meta(ge=1)]
Units = Annotated[int, Meta(ge=1, le=2**31)]


class Step(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    rename="kebab",
    tag_field="step",
    tag=str.lower,
    omit_defaults=True,
):
    """A step that changes a workload.

    Each field is an option of ``pipistrelle workload``.
    """

    #: fields that name or describe input files; `words` omits them
    _places: ClassVar[tuple[str, ...]] = ()

    def apply(self, workload: "Workload") -> "Workload":
        """Return the changed workload.

        Raises:
            PipistrelleError: an option is malformed, options conflict, or the step does not suit the workload.
        """
        raise NotImplementedError

    @property
    def draws(self) -> bool:
        """Return whether the step draws random numbers, so that its seed matters."""
        return False

    @property
    def words(self) -> str:
        """Return the step as it would be typed on the command line, without file names."""
        found = [type(self).__name__.lower()]
        for one in fields(self):
            value, name = getattr(self, one.name), f"--{one.encode_name}"
            if value == one.default or value is None or one.name in self._places:
                continue
            found += [name] if value is True else [f"{name} {v}" for v in (value if type(value) is tuple else (value,))]
        return " ".join(found)


class Filter(Step, frozen=True, kw_only=True):
    """A step that keeps the jobs that meet all conditions."""

    begin: str | None = None
    end: str | None = None
    timezone: str | None = None
    size: str | None = None
    runtime: str | None = None
    walltime: str | None = None
    user: tuple[str, ...] = ()
    group: tuple[str, ...] = ()
    account: tuple[str, ...] = ()
    queue: tuple[str, ...] = ()
    qos: tuple[str, ...] = ()
    partition: tuple[str, ...] = ()
    application: tuple[str, ...] = ()
    status: tuple[str, ...] = ()
    state: tuple[str, ...] = ()
    invert: bool = False
    clean: bool = False
    first: Count | None = None
    last: Count | None = None
    sample: str | None = None
    seed: Seed = 1
    rebase: bool = False

    @property
    def draws(self) -> bool:
        """Return whether the step draws random numbers."""
        return self.sample is not None

    def apply(self, workload: "Workload") -> "Workload":
        """Return the workload with only the kept jobs; their ids do not change.

        Submit times change only with ``rebase``, which moves time 0.
        """
        import numpy as np

        from pipistrelle.models.workloads.options import (
            parse_range,
            parse_share,
            parse_units,
            signed_seconds,
            trace_time,
            zone_of,
        )
        from pipistrelle.runs.inputs.selection import Conditions
        from pipistrelle.traces.clean import clean
        from pipistrelle.traces.transforms.cut import from_zero, keep, sample

        named = {
            name: [one for text in texts for one in text.split(",")]
            for name in FIELDS
            if (texts := getattr(self, name))
        }
        bounds = (self.begin, self.end, self.size, self.runtime, self.walltime)
        dated = self.begin is not None or self.end is not None
        if self.invert and not named and all(bound is None for bound in bounds):
            raise _refused("--invert needs a condition")
        if self.timezone is not None and not dated:
            raise _refused("--timezone requires --begin or --end")
        chosen_by = (*bounds, self.first, self.last, self.sample)
        if not (named or self.clean or self.rebase) and all(one is None for one in chosen_by):
            raise _refused("give at least one condition")
        # Only times need the time zone. An invalid zone in a header must not matter otherwise.
        zone = zone_of(workload, self.timezone) if dated else None

        def time(text: str | None, otherwise: float) -> float:
            return otherwise if text is None or zone is None else trace_time(workload, text, zone)

        def bound(text: str | None, read: Callable[[str], float], what: str) -> Any:
            return None if text is None else parse_range(text, read, what)

        conditions = Conditions(
            begin=time(self.begin, float("-inf")),
            end=time(self.end, float("inf")),
            size=bound(self.size, parse_units, "range of sizes"),
            runtime=bound(self.runtime, signed_seconds, "range of run times"),
            walltime=bound(self.walltime, signed_seconds, "range of requested times"),
            fields=named,
        )
        mask = conditions.mask(workload)
        chosen = keep(workload, ~mask if self.invert else mask)
        if self.clean:
            ids = set(clean(chosen, chosen.machine_size)[0].ids)
            chosen = keep(chosen, np.array([job in ids for job in chosen.ids], dtype=np.bool_))
            chosen = clean(chosen, chosen.machine_size)[0]
        if self.first is not None:
            chosen = keep(chosen, np.arange(min(self.first, len(chosen)), dtype=np.int64))
        if self.last is not None:
            chosen = keep(chosen, np.arange(max(0, len(chosen) - self.last), len(chosen), dtype=np.int64))
        if self.sample is not None:
            chosen = sample(chosen, parse_share(self.sample, len(chosen)), _rng(self.seed))
        return from_zero(chosen) if self.rebase else chosen


class Scale(Step, frozen=True, kw_only=True):
    """A step that scales sizes, times, memory or arrivals, in the order of its fields."""

    machine: Units | None = None
    sizes: str | None = None
    runtimes: str | None = None
    walltime: str | None = None
    memory: str | None = None
    arrivals: str | None = None
    load: Annotated[float, Meta(gt=0)] | None = None
    machine_size: Units | None = None
    seed: Seed = 1

    @property
    def draws(self) -> bool:
        """Return whether the step draws random numbers."""
        return self.walltime is not None

    def apply(self, workload: "Workload") -> "Workload":
        """Return the workload with scaled jobs."""
        from pipistrelle.models.workloads.options import parse_factor, set_walltimes
        from pipistrelle.protocol.base.log import logger
        from pipistrelle.traces.transforms import scale

        if self.arrivals is not None and self.load is not None:
            raise _refused("give either --arrivals or --load")
        if self.machine_size is not None and self.load is None:
            raise _refused("--machine-size requires --load")
        what = (self.machine, self.sizes, self.runtimes, self.walltime, self.memory, self.arrivals, self.load)
        if all(one is None for one in what):
            raise _refused("name what to scale")
        if self.machine is not None:
            workload = scale.scale_machine(workload, self.machine)
        if self.sizes is not None:
            workload = scale.scale_sizes(workload, parse_factor(self.sizes))
        if self.runtimes is not None:
            workload = scale.scale_runtimes(workload, parse_factor(self.runtimes))
        if self.walltime is not None:
            workload = set_walltimes(workload, self.walltime, _rng(self.seed))
        if self.memory is not None:
            from pipistrelle.traces.transforms.memory import scale_memory

            workload, unknown = scale_memory(workload, parse_factor(self.memory))
            if unknown:
                logger().warning(
                    "the memory of {:,} of {:,} jobs is unknown, so they request none", unknown, len(workload)
                )
        if self.arrivals is not None:
            workload = scale.scale_arrivals(workload, parse_factor(self.arrivals))
        if self.load is None:
            return workload
        workload = scale.scale_to_load(workload, self.load, self.machine_size)
        if (remark := scale.stretch_remark(workload, self.machine_size)) is not None:
            logger().warning("after scaling to load {:g}, {}", self.load, remark)
        return workload


class Merge(Step, frozen=True, kw_only=True):
    """A step that joins the jobs of several workloads into one workload."""

    _places = ("others", "sort", "units", "timezone", "columns", "strict")

    others: tuple[str, ...] = ()
    align: Literal["auto", "date", "zero", "first"] = "auto"
    apart: bool = False
    sort: bool = False
    units: LogUnits = "nodes"
    timezone: str | None = None
    columns: str | None = None
    strict: bool = False

    def apply(self, workload: "Workload") -> "Workload":
        """Return all jobs in one workload, renumbered if an id occurs twice."""
        return self.join([workload, *self.load_others()])

    def join(self, workloads: "list[Workload]") -> "Workload":
        """Return the jobs of all given workloads as one workload."""
        from pipistrelle.traces.transforms.join import merge

        return merge(workloads, self.alignment(workloads), apart=self.apart)

    def alignment(self, workloads: "list[Workload]") -> "Align":
        """Return by what to align the workloads' times: date, time 0, or first submission."""
        if self.align != "auto":
            return self.align
        return "date" if all(one.epoch is not None for one in workloads) else "zero"

    def load_others(self, beside: Sequence[str] = ()) -> "list[Workload]":
        """Load the workloads that this step merges with the first one.

        Args:
            beside: names of further input workloads. The step's options for reading logs are an error if neither these
                nor the loaded workloads include a log.

        Raises:
            PipistrelleError: no workload is named, or one is wrong.
        """
        from pipistrelle.runs.inputs.named import load_workload, reading_for

        if not self.others:
            raise _refused("name the workloads to merge")
        reading = {name: getattr(self, name) for name in self._places if name != "others"}
        return [load_workload(name, **reading_for(name, (*self.others, *beside), reading)) for name in self.others]


class Shuffle(Step, frozen=True, kw_only=True):
    """A step that permutes submit times, or draws new ones."""

    within: str | None = None
    submission_time: str | None = None
    seed: Seed = 1

    @property
    def draws(self) -> bool:
        """Return whether the step draws random numbers."""
        return True

    def apply(self, workload: "Workload") -> "Workload":
        """Return the workload with the new submit times."""
        from pipistrelle.models.workloads.options import parse_gaps
        from pipistrelle.protocol.base.lengths import parse_seconds
        from pipistrelle.traces.transforms.arrivals import redraw_submits, shuffle_submits

        if self.submission_time is not None:
            if self.within is not None:
                raise _refused("give either --within or --submission-time")
            return redraw_submits(workload, parse_gaps(self.submission_time), _rng(self.seed))
        window = float("inf") if self.within is None else parse_seconds(self.within, "window")
        return shuffle_submits(workload, _rng(self.seed), window)


class Copy(Step, frozen=True, kw_only=True):
    """A step that repeats each job."""

    times: Annotated[int, Meta(ge=1, le=1_000_000)]
    every: str | None = None
    shift: str | None = None
    draw: Literal["job", "copy", "once"] = "job"
    submission_time: str | None = None
    seed: Seed = 1

    @property
    def draws(self) -> bool:
        """Return whether the step draws random numbers."""
        return self.shift is not None or self.submission_time is not None

    def apply(self, workload: "Workload") -> "Workload":
        """Return the jobs and their copies.

        If job A depends on job B, the copy of A depends on the copy of B.
        """
        from math import isfinite

        from pipistrelle.models.workloads.options import parse_gaps, parse_range, signed_seconds
        from pipistrelle.protocol.base.lengths import parse_seconds
        from pipistrelle.traces.transforms.join import copies

        if self.submission_time is not None and (self.shift is not None or self.every is not None):
            raise _refused("--submission-time cannot be used with --shift or --every")
        low, high = parse_range(self.shift, signed_seconds, "range of shifts") if self.shift is not None else (0.0, 0.0)
        if not (isfinite(low) and isfinite(high)):
            raise _refused("--shift needs both bounds: MIN:MAX")
        return copies(
            workload,
            self.times,
            _rng(self.seed),
            every=0.0 if self.every is None else parse_seconds(self.every, "time between copies"),
            shift=(low, high),
            draw=self.draw,
            gaps=None if self.submission_time is None else parse_gaps(self.submission_time),
        )


class Redraw(Step, frozen=True, kw_only=True):
    """A step that replaces the jobs with random jobs from a model.

    The field ``model`` names a bundled model or a file. Without it, a model is fitted to the workload.
    """

    model: str | None = None
    jobs: Count | None = None
    duration: str | None = None
    load: Annotated[float, Meta(gt=0)] | None = None
    serial: Annotated[float, Meta(gt=0, lt=1)] | None = None
    seed: Seed = 1

    @property
    def draws(self) -> bool:
        """Return whether the step draws random numbers."""
        return True

    def apply(self, workload: "Workload") -> "Workload":
        """Return a workload of random jobs with new ids, times and walltimes."""
        from pipistrelle.models.likeness.drawing import generate_like
        from pipistrelle.models.likeness.fitting import fit
        from pipistrelle.models.likeness.model import load_model

        model = fit(workload) if self.model is None else load_model(self.model)
        return generate_like(
            model, self.seed, jobs=self.jobs, duration=self.duration, load=self.load, serial=self.serial
        )


AnyStep = Filter | Scale | Merge | Shuffle | Copy | Redraw
#: {name of a step: its class}
STEPS: Final[dict[str, type[AnyStep]]] = {
    "filter": Filter,
    "scale": Scale,
    "merge": Merge,
    "shuffle": Shuffle,
    "copy": Copy,
    "redraw": Redraw,
}


def _refused(what: str) -> "InputError":
    from pipistrelle.protocol.base.errors import InputError

    return InputError(what)


def _rng(seed: int) -> "np.random.Generator":
    from numpy.random import PCG64, Generator

    return Generator(PCG64(seed))

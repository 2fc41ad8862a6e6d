"""Check all simulations of a study before the first one runs.

Also choose their engines.
"""

import dataclasses
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite

from msgspec.structs import replace

from pipistrelle.models.samples.estimates import t_quantile
from pipistrelle.platforms.resources.shared_nodes import shared_nodes_of
from pipistrelle.protocol.base.errors import PipistrelleError, did_you_mean, printable, shown
from pipistrelle.protocol.base.log import logger
from pipistrelle.protocol.resources.amounts import GPU
from pipistrelle.runs.description.spec import Decides, RunSpec
from pipistrelle.runs.description.spec_file import with_digests
from pipistrelle.schedulers.plan.machine_code import has_compiler
from pipistrelle.server.setup.setup import Setup
from pipistrelle.studies.errors import StudyError
from pipistrelle.studies.measures.costs import costs_remark
from pipistrelle.studies.measures.figures import figure_names
from pipistrelle.studies.measures.job_classes import ALL, class_names
from pipistrelle.studies.measures.measures import Measures
from pipistrelle.studies.measures.window import WindowError
from pipistrelle.studies.trials.axes import column_of
from pipistrelle.studies.trials.fills import check_fill
from pipistrelle.studies.trials.study import Point, Study
from pipistrelle.studies.trials.trial import Trial

#: how metrics of a resource of shared nodes begin
_OF_RESOURCES = ("utilisation_", "used_", "unavailable_", "idle_", "fragmented_", "stranded_")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A point (combination of axis values) of a study that has been checked.

    Attributes:
        point: the point; its run includes the digests of input files.
        seeded: whether the run's failures are random.
        engine: ``reference``, ``kernel`` or ``fill``.
        why: why the engine is not the kernel; empty if it is.
        measures: the metrics of the point's trials. If the study asks for the N most frequent values of a label, the
            label has these values here.
    """

    point: Point
    seeded: bool
    engine: str
    why: str
    measures: Measures


def prepared(study: Study) -> tuple[Prepared, ...]:
    """Return the points of a study, each checked as far as possible without a run.

    Warnings about the inputs are logged.

    Raises:
        PipistrelleError: a combination cannot run, or all replicas would be equal.
    """
    if study.rule is not None:
        t_quantile(study.rule.least)  # if scipy is missing, this fails before the first trial
        known = figure_names(study.metrics, {})
        # Metrics of classes and of resources are only known when the inputs have been read.
        if not (study.metrics.by or study.fills or study.metric.startswith(_OF_RESOURCES)):
            _check_metric(study, known)
    found = []
    reader = _Reader(study)
    for point in study.points:
        try:
            found.append(reader.prepare(point))
        except PipistrelleError as error:
            raise _refusal(study, point, error) from None
    _check_names(study, reader.names)
    if study.rule is not None and not study.fills:
        by = {label: sorted(some) for label, some in reader.names.items()}
        _check_metric(study, figure_names(study.metrics, by, sorted(reader.resources)))
    if (study.count > 1 or study.rule is not None) and not any(one.seeded or one.point.drawing for one in found):
        raise StudyError(
            "all replicas would be the same, because nothing is random",
            where=f"{study.where}: replicas",
            expected="failures, or a random transformation",
            hint="Remove [replicas].",
        )
    measures = _with_names(study.metrics, reader.names)
    return tuple(dataclasses.replace(one, measures=measures) for one in _named(found, reader.own_names))


class TrialMaker:
    """Makes a trial from the numbers of its point and its replica.

    A trial is one simulation.

    Args:
        folder: file names in the study are relative to this folder.
    """

    def __init__(self, study: Study, grid: tuple[Prepared, ...], folder: str) -> None:
        self._study, self._grid, self._folder = study, grid, folder

    def __call__(self, point: int, replica: int) -> Trial:
        """Return the trial with these numbers."""
        one = self._grid[point]
        return Trial(
            point=point,
            replica=replica,
            spec=self._study.spec_of(one.point, replica, seeded=one.seeded),
            engine=one.engine,
            measures=one.measures,
            folder=self._folder,
        )


class _Reader:
    def __init__(self, study: Study) -> None:
        self._study = study
        self._digests: dict[tuple[str, ...], dict[str, str]] = {}
        self._policies: set[str] = set()
        #: {scheduler that is Python code: its own name}
        self.own_names: dict[str, str] = {}
        #: {label: values in any point's workload that get their own metrics}
        self.names: dict[str, set[str]] = {}
        self._said: set[str] = set()
        #: names of the resources of shared nodes, at any point
        self.resources: set[str] = set()

    def prepare(self, point: Point) -> Prepared:
        names = tuple(point.spec.inputs)
        if names not in self._digests:
            self._digests[names] = with_digests(point.spec).files
        spec = replace(point.spec, files=self._digests[names])
        point = dataclasses.replace(point, spec=spec)
        if self._study.fills:
            known = check_fill(spec)
            if self._study.rule is not None:
                _check_metric(self._study, known)
            return Prepared(point, seeded=True, engine="fill", why="", measures=self._study.metrics)
        objects = self._study.objects
        setup = objects.setup(spec)
        policy = spec.key(Decides.POLICY)
        if policy not in self._policies:
            self._policies.add(policy)
            made = objects.policy(spec, polls=False)
            if spec.code is not None and spec.code not in objects:
                self.own_names[spec.code] = printable(made.name)
        _check_window(self._study, setup)
        if self._study.metrics.costs is not None and (said := costs_remark(setup)) and said not in self._said:
            self._said.add(said)
            logger().warning("{}", said)
        nodes = shared_nodes_of(setup.platform.info)
        self.resources.update(() if nodes is None else (*nodes.resources, *((GPU,) if nodes.gpus.any() else ())))
        where = f"{self._study.where}: metrics.by"
        for label, values in class_names(self._study.metrics.by, setup.workloads, where).items():
            self.names.setdefault(label, set()).update(values)
        happens = setup.reliability
        drawn = happens is not None and (
            happens.failures is not None or (spec.outages is not None and spec.repair is not None)
        )
        engine, why = self._engine(spec, setup)
        return Prepared(point, drawn, engine, why, self._study.metrics)

    def _engine(self, spec: RunSpec, setup: Setup) -> tuple[str, str]:
        if self._study.engine == "reference":
            return "reference", "the study asks for it"
        why: str | None = "numba is not installed (pip install 'pipistrelle[study]')"
        if has_compiler():
            from pipistrelle.kernel.kernel import why_not  # slow: it loads the compiled code

            why = why_not(setup, spec, self._study.objects.own_policy(spec))
        if why is None:
            return "kernel", ""
        if self._study.engine == "kernel":
            raise StudyError(
                f"the kernel cannot run it: {why}", hint='With engine = "auto" the reference engine runs it.'
            )
        return "reference", why


def _with_names(measures: Measures, known: Mapping[str, set[str]]) -> Measures:
    """Return the metrics with lists of values in place of numbers N, which mean the N most frequent values.

    So every trial has the metrics of the same queues or users, whichever values are frequent among its own jobs.

    Args:
        known: {label: the values with the most jobs in any point's workload}.
    """
    by = {label: tuple(sorted(known[label])) if isinstance(told, int) else told for label, told in measures.by.items()}
    return replace(measures, by=by)


def _named(grid: list[Prepared], own_names: dict[str, str]) -> list[Prepared]:
    """Return the points with each scheduler labelled by the name that it gives itself.

    If two schedulers give the same name, their labels do not change.
    """
    column = column_of("scheduler")
    called = Counter([*own_names.values(), *({str(one.point.labels.get(column)) for one in grid} - own_names.keys())])
    found = []
    for one in grid:
        name = own_names.get(str(one.point.labels.get(column)), "")
        if called[name] == 1:
            point = dataclasses.replace(one.point, labels={**one.point.labels, column: name})
            one = dataclasses.replace(one, point=point)  # noqa: PLW2901
        found.append(one)
    return found


def _check_metric(study: Study, known: set[str]) -> None:
    if study.metric not in known:
        raise StudyError(
            f"there is no metric {shown(study.metric)}",
            where=f"{study.where}: replicas.metric",
            hint=did_you_mean(study.metric, sorted(known)),
        )


def _check_names(study: Study, known: Mapping[str, set[str]]) -> None:
    """Raise StudyError if metrics name a label, or a value, that no job has.

    A label is, for example, the queue.
    """
    for label, told in study.metrics.by.items():
        if not known[label]:
            raise StudyError(
                f"no job of the study has the label '{label}'",
                where=f"{study.where}: metrics.by.{label}",
                hint="Remove the line, or use a log that records it.",
            )
        names = [told] if isinstance(told, str) else [] if isinstance(told, int) else list(map(str, told))
        for name in names:
            if name not in (ALL, *known[label]):
                raise StudyError(
                    f"no job of the study has the {label} {shown(name)}", where=f"{study.where}: metrics.by.{label}"
                )


def _check_window(study: Study, setup: Setup) -> None:
    warm_up, drain = study.metrics.left_out
    latest = max((float(one.submit[-1]) for one in setup.workloads.values() if len(one)), default=0.0)
    span = setup.until if isfinite(setup.until) else latest
    if warm_up.jobs + drain.jobs >= max(setup.jobs, 1) or warm_up.seconds + drain.seconds > span:
        raise WindowError(
            "warm-up and drain leave nothing of a run",
            where=f"{study.where}: metrics",
            expected=f"less than {setup.jobs:,} jobs and {span:,.6g} s",
            found=f"{study.metrics.warm_up or 'none'} and {study.metrics.drain or 'none'}",
        )


def _refusal(study: Study, point: Point, error: PipistrelleError) -> PipistrelleError:
    return StudyError(f"{point.name}: {error}", where=study.where) if point.name else error

"""A trial (one simulation of a study) as plain values, and its outcome."""

import os
from dataclasses import replace
from functools import lru_cache

import msgspec
from msgspec import Struct

from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.description.spec_file import check_files
from pipistrelle.runs.execution.connection import InProcess
from pipistrelle.runs.execution.job_table import JobTable, JobTableBook
from pipistrelle.runs.execution.run import RunOptions, run
from pipistrelle.server.errors import Stalled
from pipistrelle.server.outputs.node_book import NodeBook
from pipistrelle.studies.errors import StudyError
from pipistrelle.studies.measures.figures import figures_of
from pipistrelle.studies.measures.measures import Measures
from pipistrelle.studies.measures.metrics import Metric
from pipistrelle.studies.trials.objects import NO_OBJECTS, Objects


class Trial(Struct, frozen=True, kw_only=True):
    """One run of a study.

    Attributes:
        spec: the run, with its seed.
        engine: ``reference``, ``kernel`` or ``fill``.
        measures: the metrics to compute.
        folder: file names in the run are relative to this folder.
    """

    point: int
    replica: int
    spec: RunSpec
    engine: str
    measures: Measures
    folder: str

    @property
    def name(self) -> str:
        """Return the trial's name for errors."""
        return f"trial {self.point}.{self.replica}"


class Outcome(Struct, frozen=True, kw_only=True):
    """The outcome of a trial, which is one line of a study's journal.

    Attributes:
        figures: the trial's metrics; empty if the run stalled.
        quantiles: distributions of jobs, as `pipistrelle.studies.measures.distributions` describes; may be empty.
        message: why the run stalled.
        cause: the message without times and jobs, so that equal causes have equal texts.
    """

    point: int
    replica: int
    reason: str
    figures: dict[str, Metric]
    message: str = ""
    cause: str = ""
    quantiles: dict[str, list[float]] = {}


def carry_out(trial: Trial, objects: Objects = NO_OBJECTS) -> Outcome:
    """Run a trial in this process and return its outcome, even if the run stalls.

    Args:
        objects: the objects of the study.

    Raises:
        PipistrelleError: the trial cannot run, or its scheduler fails.
    """
    _go_to(trial.folder, tuple(sorted(trial.spec.files.items())))
    if trial.engine == "fill":
        from pipistrelle.studies.trials.fills import filled  # most studies do not need it

        return Outcome(point=trial.point, replica=trial.replica, reason="filled", figures=dict(filled(trial.spec)))
    try:
        table = table_of_run(
            trial.spec,
            trial.engine,
            with_ids=bool(trial.measures.by),
            with_node_seconds=trial.measures.costs is not None,
            objects=objects,
        )
    except Stalled as stalled:
        cause = ". ".join(filter(None, (stalled.what.removeprefix("the run stalled: "), stalled.hint)))
        return Outcome(
            point=trial.point,
            replica=trial.replica,
            reason="stalled",
            figures={},
            message=str(stalled),
            cause=cause.removesuffix("."),
        )
    told = figures_of(table, trial.measures, objects.setup(trial.spec).workloads)
    return Outcome(
        point=trial.point, replica=trial.replica, reason=table.reason, figures=told.figures, quantiles=told.quantiles
    )


def table_of_run(
    spec: RunSpec,
    engine: str,
    *,
    with_ids: bool = False,
    with_node_seconds: bool = False,
    objects: Objects = NO_OBJECTS,
) -> JobTable:
    """Simulate a run in this process with the given engine and return its jobs.

    Args:
        with_ids: record the ids of jobs.
        with_node_seconds: record how long nodes were busy, idle and down, also without failures.
        objects: the objects of the study.
    """
    setup = objects.setup(spec)
    if engine == "kernel":
        from pipistrelle.kernel.table import run_kernel  # slow to import: it compiles code, or loads compiled code

        made = run_kernel(
            setup, spec, policy=objects.own_policy(spec), with_ids=with_ids, with_node_seconds=with_node_seconds
        )
        return replace(made, until=setup.until)
    book = JobTableBook(with_ids=with_ids)
    nodes = NodeBook(setup.platform) if with_node_seconds else None
    observers = [book] if nodes is None else [book, nodes]
    connection = InProcess(objects.policy(spec, warn=False))
    told = run(spec, RunOptions(setup=setup, connection=connection, observers=observers)).summary
    return book.table(
        until=setup.until,
        dropped=sum(told.dropped.values()),
        reliability=told.reliability,
        fragmentation=None if told.fragmentation is msgspec.UNSET else told.fragmentation,
        resources=None if told.resources is msgspec.UNSET else told.resources,
        node_seconds=None if nodes is None else nodes.node_seconds,
    )


@lru_cache(maxsize=256)
def _go_to(folder: str, files: tuple[tuple[str, str], ...]) -> None:
    """Change the working directory to ``folder``, the study's folder.

    Check that the study's files are unchanged.
    """
    try:
        os.chdir(folder)
    except OSError as error:
        raise StudyError(
            f"the study's folder cannot be entered ({error.strerror or error})",
            where=folder,
            hint="Workers on other machines need the same files under the same names.",
        ) from None
    check_files(dict(files))

"""Run a study.

Check it, run its trials on workers, and write the table of results.
"""

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter, process_time
from typing import Final, NamedTuple

from msgspec.structs import replace

from pipistrelle.protocol.base.log import logger
from pipistrelle.studies.errors import StudyError
from pipistrelle.studies.trials.grid import TrialMaker, prepared
from pipistrelle.studies.trials.journal import Journal, identity_of, look_into, open_folder
from pipistrelle.studies.trials.line_file import write_table
from pipistrelle.studies.trials.objects import Objects
from pipistrelle.studies.trials.replicas import Replication, replication_of
from pipistrelle.studies.trials.results import TRIALS, Results, import_pyarrow, parquet_of, table_of
from pipistrelle.studies.trials.study import Study
from pipistrelle.studies.trials.trial import Trial, carry_out
from pipistrelle.studies.workers.cluster import DaskCrew, SlurmCrew
from pipistrelle.studies.workers.crew import Crew
from pipistrelle.studies.workers.here import HereCrew
from pipistrelle.studies.workers.pool import LocalCrew

#: a trial that takes less processor time than this (s) is timed again, because its first run includes imports and
#: compilation
_SURE_S: Final = 120.0
#: maximum time between two reports of progress (s)
_TICK_S: Final = 0.5


class Headway(NamedTuple):
    """The progress of a study, in numbers of trials.

    Attributes:
        done: trials that have ended.
        known: trials known to be needed so far, including those that have ended.
        before: trials that had ended when `run` was called, because it continues a study.
    """

    done: int
    known: int
    before: int


class StudyEstimate(NamedTuple):
    """The estimated cost of a study, in wall-clock seconds.

    ``seconds`` is the time per trial, averaged over ``measured`` trials. ``start`` is the time that each worker needs
    before its first trial. If ``uncompiled``, the trials were measured in the reference engine, because the kernel,
    which will run them much faster, is not compiled yet.
    """

    points: int
    trials: int
    done: int
    seconds: float
    measured: int
    start: float
    uncompiled: bool = False


def run(
    study: Study | str | Path | Mapping[str, object],
    out: str | Path | None = None,
    *,
    jobs: int | None = None,
    dask: str | None = None,
    slurm: int | None = None,
    slurm_options: Sequence[str] = (),
    overwrite: bool = False,
    watch: Callable[[Headway], None] = lambda progress: None,
) -> Results:
    """Run a study, or the rest of an interrupted study, and return its results.

    Args:
        study: the study, its file, or the values of its file.
        out: folder of the journal and of ``trials.parquet``, created if missing. If it already has trials of the study,
            the study continues. None keeps no files.
        jobs: number of worker processes on this machine; None for one per processor.
        dask: address of a Dask scheduler whose workers are used instead.
        slurm, slurm_options: number of Slurm jobs used as workers instead, and their options (docs/how-to/studies.md).
        overwrite: replace the results of another study in the folder, instead of raising an error.
        watch: called regularly with the progress.

    Raises:
        PipistrelleError: the study is wrong (if possible, before the first trial), a trial failed, or the folder is not
            writable; ended trials are kept.
        KeyboardInterrupt: Ctrl-C; ended trials are kept.
    """
    if not isinstance(study, Study):
        study = Study(**study) if isinstance(study, Mapping) else Study.read(study)  # type: ignore[arg-type]
    import_pyarrow()
    grid = prepared(study)
    with ExitStack() as stack:
        kept = None if out is None else Path(out)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pipistrelle-"))) if kept is None else kept
        journal = stack.enter_context(open_folder(folder, study, grid, overwrite=overwrite))
        replication = replication_of(study, journal.outcomes)

        def write() -> Results:
            # Ctrl-C may come before the journal's index has the trial that ended last.
            wanted = {key: journal.outcomes[key] for key in replication.ended if key in journal.outcomes}
            table = table_of(study, grid, wanted, identity_of(study, grid))
            write_table(folder / TRIALS, parquet_of(table))
            return Results(table, None if kept is None else kept / TRIALS)

        if replication.left:
            crew = stack.enter_context(_crew(study.objects, jobs, dask, slurm, slurm_options))
            try:
                _carry_out(TrialMaker(study, grid, os.getcwd()), replication, journal, crew, watch)
            except KeyboardInterrupt:
                write()
                raise
        if replication.imprecise:
            text = "{:,} of {:,} points are not as precise as requested: they need more replicas than 'at-most'"
            logger().warning(text, replication.imprecise, len(grid))
        return write()


def estimate(study: Study, out: str | Path | None = None) -> StudyEstimate:
    """Estimate how long a study takes.

    This runs the first trials of the study's first and last point. It does not compile the kernel, because that takes
    much longer than these trials.

    Args:
        out: the study's folder, whose trials count as done; nothing is written to it.

    Raises:
        PipistrelleError: as `run` does before the first trial.
    """
    grid = prepared(study)
    make = TrialMaker(study, grid, os.getcwd())
    outcomes = {} if out is None else look_into(Path(out), study, grid)
    replication = replication_of(study, outcomes)
    trials = [make(point, 0) for point in sorted({0, len(grid) - 1})]
    uncompiled = any(trial.engine == "kernel" for trial in trials) and not _is_compiled()
    if uncompiled:
        trials = [replace(trial, engine="reference") if trial.engine == "kernel" else trial for trial in trials]
    for trial in () if study.fills else trials:
        study.objects.setup(trial.spec)  # a worker reads inputs only once, so this does not count
    starts, times = zip(*(_timed(trial, study.objects) for trial in trials), strict=True)
    seconds = sum(times) / len(trials)
    return StudyEstimate(
        len(grid), replication.known, len(replication.ended), seconds, len(trials), sum(starts), uncompiled
    )


def _is_compiled() -> bool:
    from pipistrelle.kernel.kernel import is_compiled  # only for studies that use the kernel

    return is_compiled()


def _timed(trial: Trial, objects: Objects) -> tuple[float, float]:
    """Run a trial, and measure how long it takes; a short trial is run twice.

    Return the wall-clock seconds of imports and compilation, and of the trial.
    """
    took: list[float] = []
    started = process_time()
    while len(took) < 2 and process_time() - started < _SURE_S:
        began = perf_counter()
        carry_out(trial, objects)
        took.append(perf_counter() - began)
    return max(took[0] - took[-1], 0.0), took[-1]


def _crew(objects: Objects, jobs: int | None, dask: str | None, slurm: int | None, options: Sequence[str]) -> Crew:
    if sum(one is not None for one in (jobs, dask, slurm)) > 1:
        raise StudyError("only one kind of workers can be used", expected="one of --jobs, --dask and --slurm")
    if options and slurm is None:
        raise StudyError("--slurm-option requires --slurm")
    if objects and (dask is not None or slurm is not None):
        raise StudyError(
            "workers on other machines cannot have the Python objects of a study",
            expected="names and files, or workers on this machine",
        )
    if dask is not None:
        return DaskCrew(dask)
    if slurm is not None:
        return SlurmCrew(slurm, options)
    workers = jobs or (1 if objects else len(os.sched_getaffinity(0)))
    if not objects:
        return LocalCrew(workers)
    return HereCrew(objects) if workers == 1 else LocalCrew(workers, objects)


def _carry_out(
    make: TrialMaker,
    replication: Replication,
    journal: Journal,
    crew: Crew,
    watch: Callable[[Headway], None],
) -> None:
    before = len(replication.ended)

    def fill() -> None:
        for _ in range(crew.free):
            if (key := replication.next()) is None:
                return
            crew.start(make(*key))

    fill()
    while crew.busy:
        ended = crew.ended(_TICK_S)
        replication.take(ended)
        fill()  # start trials before writing the journal, so that workers do not wait for the disk
        if ended:
            journal.append(ended)
        watch(Headway(len(replication.ended), replication.known, before))

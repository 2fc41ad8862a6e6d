"""The steps of ``pipistrelle workload``: filter, scale, merge, shuffle, copy, redraw."""

from typing import Final

from pipistrelle.cli.workload.steps import StepCommand
from pipistrelle.models.workloads import FIELDS
from pipistrelle.runs.inputs.steps import Copy, Filter, Merge, Redraw, Scale, Shuffle

_NAMED: Final = {"application": " (a number).", "status": " (a number).", "state": ", written as in the log."}
_SEED: Final = "Random seed."

filter_step = StepCommand(
    Filter,
    """Keep the jobs that meet all conditions.

    IN is a bundled name or a file. Give several values as --user 3,7 or --user 3 --user 7. Ids and submit times
    do not change. Dependencies on removed jobs are dropped.
    """,
    {
        "begin": "TIME\tKeep jobs submitted at TIME or later: a date, or a time in the log such as 30d.",
        "end": "TIME\tKeep jobs submitted before TIME.",
        "timezone": "ZONE\tTime zone of dates and of the log's clock.\tas in IN, or UTC",
        "size": "MIN:MAX\tKeep jobs of MIN to MAX units; either bound is optional.",
        "runtime": "MIN:MAX\tKeep jobs with run times from MIN to MAX, such as 1h:24h.",
        "walltime": "MIN:MAX\tKeep jobs with requested times from MIN to MAX.",
        **{name: f"VALUE[,VALUE...]\tKeep jobs of this {name}{_NAMED.get(name, '.')}" for name in FIELDS},
        "invert": "Keep only the jobs that fail at least one condition.",
        "clean": "Remove jobs that cannot run.",
        "first": "NUMBER\tOf the jobs kept, use only the first NUMBER.",
        "last": "NUMBER\tOf the jobs kept, use only the last NUMBER.",
        "sample": "NUMBER|P%\tOf the jobs kept, use only a random sample.",
        "seed": _SEED,
        "rebase": "Shift all times so that the first job is submitted at 0.",
    },
)
scale_step = StepCommand(
    Scale,
    """Change sizes, times, memory or arrivals, in the order of the options below.

    IN is a bundled name or a file. A FACTOR is a number above 0 or a percentage: 0.5 or 50%.
    """,
    {
        "machine": "UNITS\tScale job sizes to a machine of this size.",
        "sizes": "FACTOR\tMultiply and round the job sizes.",
        "runtimes": "FACTOR\tMultiply the run times.",
        "walltime": "LIMIT\tSet walltimes: 12h, x2 (double), 101% (of run time), 100:3000 (random seconds) or none.",
        "memory": "FACTOR\tMultiply the memory requests of jobs (SWF field 10, or else 7, for jobs without a request).",
        "arrivals": "FACTOR\tMultiply submit times: with 50%, jobs arrive twice as fast.",
        "load": "Scale arrivals to this offered load, such as 0.9.",
        "machine_size": "\tWith --load: size of the machine in units (nodes or processors).\tas in IN",
        "seed": _SEED,
    },
    walltime="--wallclock-limit",
)
merge_step = StepCommand(
    Merge,
    """Join several workloads into one.

    Each IN is a bundled name or a file. Jobs are renumbered if ids occur twice.
    """,
    {
        "align": "Align workloads by date, time 0 (zero) or first job; auto: date if all have dates, else zero.",
        "apart": "Rename users, groups and queues so that workloads do not share them.",
    },
)
shuffle_step = StepCommand(
    Shuffle,
    """Redistribute submit times among the jobs.

    IN is a bundled name or a file.
    """,
    {
        "within": "TIME\tExchange submit times only within windows of this length, such as 1d.",
        "submission_time": "GAPS\tDraw new gaps between submit times, in seconds: 100:fixed, 200:exp or 0:200:unif.",
        "seed": _SEED,
    },
)
copy_step = StepCommand(
    Copy,
    """Repeat each job several times.

    IN is a bundled name or a file. If a job depends on another, its copies depend on the other's copies.
    """,
    {
        "times": "Number of copies of each job, including the original.",
        "every": "TIME\tTime from one copy to the next: 7d repeats a week-long log every week.",
        "shift": "TIME|MIN:MAX\tFixed or random delay of copies; may be negative.",
        "draw": "With a random --shift: draw it per job, per copy, or once.",
        "submission_time": "GAPS\tDraw the gaps between copies; GAPS as in 'shuffle --submission-time'.",
        "seed": _SEED,
    },
)
redraw_step = StepCommand(
    Redraw,
    """Draw new jobs from a model of the workload.

    IN is a bundled name or a file.
    """,
    {
        "model": "NAME|FILE\tUse this model instead of one fitted to IN: 'grizzly' or a TOML file.",
        "jobs": "\tNumber of jobs.\tas in the model",
        "duration": "TIME\tLength of the workload, such as '1y'.",
        "load": "\tOffered load: requested node time / available node time, such as 0.9.\tas in the model",
        "serial": "\tShare of one-unit jobs.\tas in the model",
        "seed": _SEED,
    },
)

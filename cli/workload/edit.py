"""The steps of ``pipistrelle workload`` that change a workload.

They are filter, scale, merge, shuffle, copy and redraw.
"""

from typing import Final

from pipistrelle.cli.workload.steps import StepCommand
from pipistrelle.models.workloads import FIELDS
from pipistrelle.runs.inputs.step_texts import WALLCLOCK_LIMIT
from pipistrelle.runs.inputs.steps import Copy, Filter, Merge, Redraw, Scale, Shuffle

_NAMED: Final = {
    "application": " (a number).",
    "status": " (a number, as in SWF).",
    "state": ", as written in the log: COMPLETED, ...",
}
_SEED: Final = "Random seed; equal seeds give equal results."

filter_step = StepCommand(
    Filter,
    """Keep the jobs that meet all conditions.

    IN is a bundled name or a file. Give several values as --user 3,7 or --user 3 --user 7. Ids and submit times
    do not change. Dependencies on removed jobs are dropped.
    """,
    {
        "begin": "TIME\tKeep jobs submitted at TIME or later: a date, or a time of the log such as 30d.",
        "end": "TIME\tKeep jobs submitted before TIME.",
        "timezone": "ZONE\tTime zone of the log and of dates in options.\tas in IN, or UTC",
        "size": "MIN:MAX\tKeep jobs of MIN to MAX units; either bound is optional.",
        "runtime": "MIN:MAX\tKeep jobs with run times from MIN to MAX, such as 1h:24h.",
        "walltime": "MIN:MAX\tKeep jobs with walltimes (requested times) from MIN to MAX.",
        **{name: f"VALUE[,VALUE...]\tKeep jobs with this {name}{_NAMED.get(name, '.')}" for name in FIELDS},
        "invert": "Keep only the jobs that fail at least one condition.",
        "clean": "Also remove jobs that cannot run (without run time or size, or larger than the machine).",
        "first": "NUMBER\tOf the jobs kept, use only the first NUMBER.",
        "last": "NUMBER\tOf the jobs kept, use only the last NUMBER.",
        "sample": "NUMBER|P%\tOf the jobs kept, use only a random sample of this size.",
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
        "machine": "UNITS\tScale job sizes from IN's machine to one of this size.",
        "sizes": "FACTOR\tMultiply and round the job sizes.",
        "runtimes": "FACTOR\tMultiply the run times.",
        "walltime": "LIMIT\tSet walltimes: 12h, x2 (double), 101% (of run time), 100:3000 (random seconds) or none.",
        "memory": (
            "FACTOR\tMultiply each job's memory request. In an SWF log: field 10 (requested), "
            "or field 7 (used) if field 10 is missing."
        ),
        "arrivals": "FACTOR\tMultiply submit times: with 50%, jobs arrive twice as fast.",
        "load": "Scale submit times to this offered load: node time requested / available, such as 0.9.",
        "machine_size": "\tWith --load: size of the machine in units (nodes or processors).\tas in IN",
        "seed": _SEED,
    },
    walltime=f"--{WALLCLOCK_LIMIT}",
)
merge_step = StepCommand(
    Merge,
    """Join several workloads into one.

    Each IN is a bundled name or a file. Jobs are renumbered if ids occur twice.
    """,
    {
        "align": "Align logs: by date, at time 0 (zero) or at their first jobs; auto: date if known, else zero.",
        "apart": "Rename users, groups and queues, so that no two workloads share one.",
    },
)
shuffle_step = StepCommand(
    Shuffle,
    """Exchange the submit times of jobs at random, or draw new ones.

    IN is a bundled name or a file. All other properties of the jobs stay the same.
    """,
    {
        "within": "TIME\tExchange submit times only within periods of this length, such as 1d.",
        "submission_time": (
            "GAPS\tDraw new times between submissions: 100:fixed (100 s), 200:exp (exponential, mean 200 s) or "
            "0:200:unif (uniform)."
        ),
        "seed": _SEED,
    },
)
copy_step = StepCommand(
    Copy,
    """Repeat each job several times.

    IN is a bundled name or a file. If a job depends on another, its copies depend on the other's copies. Without
    --every and --shift, the copies of a job are submitted at the same time as the job.
    """,
    {
        "times": "Number of copies of each job, including the original.",
        "every": "TIME\tTime from one copy to the next: 7d repeats a week-long log every week.",
        "shift": "TIME|MIN:MAX\tDelay copies by TIME, or by a random time from MIN to MAX; negative: earlier.",
        "draw": "With --shift MIN:MAX: draw one delay for each copied job, for each copy of the log, or once for all.",
        "submission_time": (
            "GAPS\tIn each copy of the log, draw new times between submissions: 100:fixed (100 s), "
            "200:exp (exponential, mean 200 s) or 0:200:unif (uniform)."
        ),
        "seed": _SEED,
    },
)
redraw_step = StepCommand(
    Redraw,
    """Replace the jobs by random ones with similar statistics.

    IN is a bundled name or a file. The jobs are drawn from a statistical model that is fitted to IN.
    """,
    {
        "model": "NAME|FILE\tDraw from this model, not from one fitted to IN: 'grizzly' or a TOML file.",
        "jobs": "\tNumber of jobs to draw.\tas in the model",
        "duration": "TIME\tTime span of the drawn jobs, such as '1y'.",
        "load": "\tOffered load: requested node time / available node time, such as 0.9.\tas in the model",
        "serial": "\tShare of jobs that use one node or processor, such as 0.4.\tas in the model",
        "seed": _SEED,
    },
)

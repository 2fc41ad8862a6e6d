"""``pipistrelle workload filter|scale|merge|shuffle|copy``: their options; what each does is said in `studies`."""

from typing import Final

from pipistrelle.cli.workload.steps import StepCommand
from pipistrelle.models.workloads import FIELDS
from pipistrelle.runs.inputs.steps import Copy, Filter, Merge, Redraw, Scale, Shuffle

_NAMED: Final = {"application": ", a number.", "status": ", a number.", "state": ", as the log names it."}
_SEED: Final = "Equal seeds give equal bytes."

filter_step = StepCommand(
    Filter,
    """Write the jobs of the workload IN that fulfil all conditions.

    IN is a bundled name or a file. A value of a field may be one of several: --user 3,7 or --user 3 --user 7. Ids and
    submit times stay; jobs no longer wait for those that are left out.
    """,
    {
        "begin": "TIME\tOnly jobs submitted from then on: a date, or a time after time 0.",
        "end": "TIME\tOnly jobs submitted before then.",
        "timezone": "ZONE\tZone of the dates, as Europe/Paris, and of the clock of a log of PBS, Slurm or Maui; "
        "default: the trace's, else UTC.",
        "size": "MIN:MAX\tOnly jobs of so many units; bounds included, either may be left out.",
        "runtime": "MIN:MAX\tOnly jobs that run so long, as 1h:24h.",
        "walltime": "MIN:MAX\tOnly jobs that ask for so much time.",
        **{name: f"VALUE[,VALUE...]\tOnly jobs of this {name}{_NAMED.get(name, '.')}" for name in FIELDS},
        "invert": "Keep the jobs that do not fulfil all of the conditions above.",
        "clean": "Leave out the jobs that cannot run.",
        "first": "NUMBER\tTake so many of the first jobs left.",
        "last": "NUMBER\tTake so many of the last jobs left.",
        "sample": "NUMBER|P%\tTake so many of the jobs left, by chance.",
        "seed": _SEED,
        "rebase": "Move time 0, and the date it has, to the first job.",
    },
)
scale_step = StepCommand(
    Scale,
    """Write the workload IN with sizes, times or arrivals changed, in the order of the options below.

    IN is a bundled name or a file. A FACTOR is a number above 0 or a percentage: 0.5 or 50%.
    """,
    {
        "machine": "UNITS\tFit the sizes to a machine this large.",
        "sizes": "FACTOR\tMultiply the sizes, and round them.",
        "runtimes": "FACTOR\tMultiply the run times; requested times stay.",
        "walltime": "LIMIT\tSet the requested times: 12h; 101% or 50%:150% of the run time; 100:3000 by chance; x2; "
        "none.",
        "arrivals": "FACTOR\tMultiply the times since the first submission: 50% is twice as fast.",
        "load": "Scale arrivals so that this load is offered, as 0.9.",
        "machine_size": "For --load: the machine's size in units; default: the trace's.",
        "seed": _SEED,
    },
    walltime="--wallclock-limit",
)
merge_step = StepCommand(
    Merge,
    """Write the jobs of several workloads as one.

    Each IN is a bundled name or a file. Jobs are numbered anew if an id occurs twice.
    """,
    {
        "align": "What is at the same time: equal dates, the times 0, or the first jobs; auto: dates if all have them, "
        "else 0.",
        "apart": "Users, groups, queues and so on of different workloads are different ones.",
    },
)
shuffle_step = StepCommand(
    Shuffle,
    """Write the workload IN with its submit times dealt out anew among its jobs.

    IN is a bundled name or a file.
    """,
    {
        "within": "TIME\tExchange submit times only inside windows of this length, as 1d.",
        "submission_time": "GAPS\tDraw new submit times instead, the jobs in their order: 100:fixed, 200:exp (mean), "
        "0:200:unif.",
        "seed": _SEED,
    },
)
copy_step = StepCommand(
    Copy,
    """Write the workload IN with each job several times.

    IN is a bundled name or a file. A copy waits for the copies of the jobs that its original waits for.
    """,
    {
        "times": "How often each job is there in the end.",
        "every": "TIME\tSubmit the k-th copy k times this later: 7d repeats a week.",
        "shift": "TIME|MIN:MAX\tSubmit copies so much later, or by chance between; may be negative.",
        "draw": "How often a --shift by chance is drawn: for each job, each copy, or once.",
        "submission_time": "GAPS\tDraw submit times of the copies, as with 'shuffle'.",
        "seed": _SEED,
    },
)
redraw_step = StepCommand(
    Redraw,
    """Write other jobs than those of the workload IN, drawn by a model of it.

    IN is a bundled name or a file.
    """,
    {
        "model": "NAME|FILE\tDraw by this model instead: 'grizzly', or one in a TOML file.",
        "jobs": "Number of jobs; default: those of the model.",
        "duration": "TIME\tHow long jobs are submitted, as '1y'.",
        "load": "Offered load: unit-seconds of the jobs over those of the machine; default: the model's.",
        "serial": "Share of jobs of one unit, as 0.475; default: the model's.",
        "seed": _SEED,
    },
)

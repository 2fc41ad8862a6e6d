"""Options of a run in which nodes fail, are repaired and are maintained."""

from typing import Final

from pipistrelle.cli.options.fields import added, options_of
from pipistrelle.cli.options.names import completed
from pipistrelle.cli.options.sections import FAILURES, in_section
from pipistrelle.cli.terminal.guard import FilledPath
from pipistrelle.runs.description.spec import RunSpec

_TEXTS: Final = {
    "failures": "MODEL\tLet nodes fail: 'exponential,smtbf=24h', 'weibull,mtbf=10250h,shape=0.7', a name ('lanl-20') "
    "or a fitted TOML file; several add up; 'none': not even as the platform says.",
    "repair": "TIME|MODEL\t'5d', 'exponential,mttr=1h', ...; default: as model or platform say.",
    "seed": "Equal seeds give equal failures.",
    "reliability_factor": "Multiply all rates of failure.",
    "outages": "FILE\tReplay outages: node,down,up,cause CSV, LANL's table, Titan's lives, events of Batsim, Slurm or "
    "PBS.",
    "outages_class": "NAME\tTake one class of the file's nodes: a system of LANL's, ...",
    "outages_start": "TIME\tWhere in the file time 0 is: a date, or a time after its time 0.",
    "outages_shortest": "TIME\tLeave out outages of the file that are shorter; default: none.",
    "maintenance": "RULE|FILE\tPlan maintenance: '2017-01-29 08:00 +20000s all'; also weekly, for nodes or a pool; or "
    "a file of rules.",
    "checkpoint": "daly|young|SECONDS\tLet jobs dump their state, so often, and restart from it.",
    "dump": "TIME\tHow long a dump takes; default: no time.",
    "read": "TIME\tHow long a restart takes to read a dump; default: no time.",
    "spares": "N|SHARE%\tNodes of each allocation that stay idle until others fail.",
    "resilience": "Let jobs go on with fewer nodes: any number, or as a grid that loses rows and columns.",
    "requeue": "Where a job that lost its nodes queues again.",
    "max_attempts": "How often a job is started at most.",
    "expected_attempts": "End the run when a job that keeps losing its work can be expected to need more; 0: never.",
    "restart_walltime": "The walltime of a new attempt: the whole, or the rest after the work that is saved.",
    "checkpoint_walltime": "Let dumps and reads take of the walltime asked for, or extend it.",
}
_COMPLETIONS: Final = {"failures": completed("failures", or_file=True)}
reliability_options: Final = in_section(
    FAILURES, added(options_of(RunSpec, _TEXTS, {"outages": FilledPath()}, completions=_COMPLETIONS))
)

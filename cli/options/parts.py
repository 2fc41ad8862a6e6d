"""Options that replace parts of a bundled scheduler."""

from collections.abc import Callable
from typing import Final

import click

from pipistrelle.cli.options.fields import added, options_of
from pipistrelle.cli.options.names import completed
from pipistrelle.cli.options.sections import SCHEDULER, in_section
from pipistrelle.cli.terminal.guard import FilledPath
from pipistrelle.runs.description.policy import OPPOSITES, PolicySpec, SchedulerChoice, span_of, step_of
from pipistrelle.schedulers.catalogue.names import PARTS


def _readable(read: Callable[[str], float]) -> Callable[..., str | None]:
    """Return a click callback that accepts a text if ``read`` can parse it."""

    def look(ctx: click.Context, param: click.Parameter, text: str | None) -> str | None:
        try:
            if text is not None:
                read(text)
        except ValueError as error:
            raise click.BadParameter(str(error), ctx, param) from None
        except SchedulerChoice as error:
            raise click.BadParameter(f"{error.what}.", ctx, param) from None
        return text

    return look


def _conditions(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> tuple[str, ...]:
    """Check the syntax of conditions on jobs, such as 'nodes<=16', and return them."""
    if texts:
        from pipistrelle.schedulers.placement.selections import Selection  # not needed for the help

        Selection(texts, param.opts[0])
    return texts


def _changes(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
    """Parse changes of a configuration, each as KEY=VALUE.

    Raise a usage error for any other text.
    """
    found: dict[str, str] = {}
    for text in texts:
        key, mark, value = text.partition("=")
        if not mark or not key.strip():
            raise click.BadParameter(f"'{text}' is not KEY=VALUE.", ctx, param)
        found[key.strip()] = value
    return found


_TEXTS: Final = {
    "order": f"NAME\tOrder of the queue, instead of the scheduler's own: {', '.join(PARTS['order'])}.",
    "backfill": f"NAME\tBackfilling rule, instead of the scheduler's own: {', '.join(PARTS['backfill'])}.",
    "placement": (
        "NAME[,KEY=VALUE...]\tRule that chooses a job's nodes, instead of the scheduler's own: "
        f"{', '.join(PARTS['placement'])}."
    ),
    "node_order": "Order in which nodes are tried for a job ('pipistrelle help placing').",
    "age_aware": "Try stable nodes (those that fail rarely) first.",
    "dual_ended": "CONDITION\tPlace jobs that meet CONDITION at the end of the node order: 'nodes<=16'; repeatable.",
    "base_order": "CONDITION\tIgnore --age-aware for jobs that meet CONDITION ('nodes<=16'); repeatable.",
    "reliability_target": "PROBABILITY\tRequired probability that a job ends without a node failure.",
    "formula": "TEXT\tWith --order pbs: formula that sorts the queue, highest value first ('pipistrelle help pbs').",
    "queue_priority": "QUEUE=NUMBER\tWith --order pbs: priority of a queue; repeatable.\t0",
    "fairshare_entity": "With --order pbs: kind of entity whose past usage counts for fair share.",
    "fairshare_shares": "ENTITY=SHARES\tWith --order pbs: fair share of one user, group or other entity; repeatable.",
    "unknown_shares": "SHARES\tWith --order pbs: total fair share of all entities not named in --fairshare-shares.",
    "fairshare_decay_time": "TIME\tWith --order pbs: interval between decays of past usage, such as 24h; 0: no decay.",
    "fairshare_decay_factor": "FACTOR\tWith --order pbs: multiply past usage by FACTOR at each decay.",
    "backfill_depth": "JOBS\tWith --backfill depth: number of jobs that get a reservation.",
    "strict_ordering": (
        "With --backfill depth: reserve nodes for the first queued jobs; if off, start every job that fits."
    ),
    "reliability": (
        "NAME|FILE|auto\tGive each class of jobs its own nodes; larger, longer jobs get more reliable ones. "
        "Classes: bundled, TOML file, or auto (by size)."
    ),
    "blocking": "PROBABILITY\tWith --reliability: accepted probability that all nodes of a job's class are busy.\t0",
    "admission": "\tWith --reliability: queue a job that cannot start at once, or reject it (block).\tqueue",
    "preempt_type": "What decides which jobs preempt others: their QOS (--preempt) or their tier (--priority-tier).",
    "preempt_mode": (
        "MODE|NAME=MODE\tPreempt jobs by requeue, checkpoint or cancel, or never (off). "
        "With NAME=: only jobs of this QOS or queue; repeatable.\trequeue"
    ),
    "preempt": "QOS=QOS[|QOS...]\tJobs of the first QOS may preempt jobs of the others; repeatable.",
    "priority_tier": (
        "NAME=NUMBER\tPreemption tier of the queue or QOS NAME: higher tiers preempt lower ones; repeatable."
    ),
    "preempt_grace": (
        "TIME|NAME=TIME\tTime that a preempted job may still run (NAME: only this QOS or queue); repeatable.\tnone"
    ),
    "preempt_exempt_time": "TIME\tTime after its start during which a job cannot be preempted.\tnone",
    "preempt_youngest_first": "Preempt the most recently started jobs first, instead of the largest jobs.",
    "config": (
        "FILE|DIR\tConfiguration: maui.cfg for maui; slurm.conf or its folder for slurm and slurmctld."
        "\tfor maui: its built-in values"
    ),
    "strict_config": "Reject unknown or unsupported settings in --config; if off, only warn.",
    "accounting": "FILE\tAccounts and QOS for slurm and slurmctld: sacctmgr output or commands; repeatable.",
    "reservations": (
        "FILE[,zero=DATE]\tWith slurm: file of 'scontrol create reservation' commands "
        "(zero: the date of simulated time 0); repeatable."
    ),
    "slurm": "KEY=VALUE\tWith slurm: override a setting in Slurm's files, such as bf_window=7200; repeatable.",
    "slurm_prefix": "DIR\tWith slurmctld: folder in which Slurm is installed.\tthe programs in the PATH",
    "poll": "TIME\tLet the scheduler decide only at multiples of TIME, such as 5s.\tat every event",
}
part_options: Final = in_section(
    SCHEDULER,
    added(
        options_of(
            PolicySpec,
            _TEXTS,
            {
                "fairshare_decay_time": _readable(span_of),
                "dual_ended": _conditions,
                "base_order": _conditions,
                "reliability_target": click.FloatRange(0, 1, min_open=True, max_open=True),
                "config": FilledPath(),
                "slurm_prefix": FilledPath(file_okay=False),
                "slurm": _changes,
                "poll": _readable(step_of),
            },
            OPPOSITES,
            completions={axis: completed(axis) for axis in PARTS} | {"reliability": completed("classes", or_file=True)},
        )
    ),
)

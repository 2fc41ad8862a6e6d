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
    """Return a click callback that accepts a text if the function ``read`` can parse it."""

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
    """Parse changes of a configuration, KEY=VALUE; raise a usage error for any other text."""
    found: dict[str, str] = {}
    for text in texts:
        key, mark, value = text.partition("=")
        if not mark or not key.strip():
            raise click.BadParameter(f"'{text}' is not KEY=VALUE.", ctx, param)
        found[key.strip()] = value
    return found


_TEXTS: Final = {
    "order": f"NAME\tQueue order ({', '.join(PARTS['order'])}); replaces the scheduler's.",
    "backfill": f"NAME\tBackfilling rule ({', '.join(PARTS['backfill'])}); replaces the scheduler's.",
    "placement": f"NAME[,KEY=VALUE...]\tPlacement ({', '.join(PARTS['placement'])}); replaces the scheduler's.",
    "node_order": "Order in which placement tries the nodes ('pipistrelle help placing').",
    "age_aware": "Put stable nodes (those that fail rarely) first in the node order.",
    "dual_ended": "CONDITION\tPlace jobs meeting CONDITION ('nodes<=16') at the end of the node order; repeatable.",
    "base_order": "CONDITION\tIgnore --age-aware for jobs that meet CONDITION ('nodes<=16'); repeatable.",
    "reliability_target": "PROBABILITY\tUse only nodes on which a job finishes with this minimum probability.",
    "formula": "TEXT\tWith --order pbs: formula that sorts the queue, highest value first ('pipistrelle help pbs').",
    "queue_priority": "QUEUE=NUMBER\tWith --order pbs: priority of a queue; repeatable.\t0",
    "fairshare_entity": "With --order pbs: charge a job's usage to its user, group, account, queue or qos.",
    "fairshare_shares": "ENTITY=SHARES\tWith --order pbs: fair shares of an entity (a user, group, ...); repeatable.",
    "unknown_shares": "SHARES\tWith --order pbs: total shares of all entities that --fairshare-shares does not name.",
    "fairshare_decay_time": "TIME\tWith --order pbs: interval at which recorded usage decays, such as 24h; 0: never.",
    "fairshare_decay_factor": "FACTOR\tWith --order pbs: factor by which recorded usage is multiplied at each decay.",
    "backfill_depth": "JOBS\tWith --backfill depth: number of jobs that get a reservation.",
    "strict_ordering": "With --backfill depth: make reservations; if off, start every job that fits.",
    "reliability": (
        "NAME|FILE|auto\tJob classes; each gets its own nodes, the most reliable for large, long jobs. "
        "auto: classes by size."
    ),
    "blocking": "PROBABILITY\tWith --reliability: accepted probability that a job finds its partition full.\t0",
    "admission": "\tWith --reliability: queue a job that cannot start at once, or reject it (block).\tqueue",
    "preempt_type": "Preempt by QOS lists (--preempt) or tiers (--priority-tier).",
    "preempt_mode": (
        "MODE|NAME=MODE\tWhat happens to preempted jobs: requeue, checkpoint, cancel or off (no preemption). "
        "NAME: only for jobs of this QOS or queue; repeatable.\trequeue"
    ),
    "preempt": "QOS=QOS[|QOS...]\tLet jobs of the QOS before '=' preempt those after it; repeatable.",
    "priority_tier": "NAME=NUMBER\tTier of a queue or QOS; higher tiers preempt lower tiers; repeatable.",
    "preempt_grace": "TIME|NAME=TIME\tGrace period of preempted jobs (of the QOS or queue NAME); repeatable.\tnone",
    "preempt_exempt_time": "TIME\tMinimum run time before a job can be preempted.\tnone",
    "preempt_youngest_first": "Preempt the most recently started jobs first, instead of the largest jobs.",
    "config": "FILE\tScheduler configuration: maui.cfg, or slurm.conf ('pipistrelle help slurm').\tMaui's defaults",
    "strict_config": "Reject unknown or unsupported settings in --config; if off, only warn.",
    "accounting": "FILE\tWith slurm: sacctmgr output (dump or listing) or commands; repeatable.",
    "reservations": (
        "FILE[,zero=DATE]\tWith slurm: file of 'scontrol create reservation' commands; "
        "DATE: date of simulated time 0; repeatable."
    ),
    "slurm": "KEY=VALUE\tWith slurm: change a setting of its files, such as bf_window=7200; repeatable.",
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
                "config": FilledPath(dir_okay=False),
                "slurm": _changes,
                "poll": _readable(step_of),
            },
            OPPOSITES,
            completions={axis: completed(axis) for axis in PARTS} | {"reliability": completed("classes", or_file=True)},
        )
    ),
)

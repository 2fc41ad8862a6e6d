"""Options that replace parts of a scheduler of ours, and options of those parts."""

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
    """Return what lets a text pass that ``read`` can read."""

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
    """Let conditions on jobs pass that can be read."""
    if texts:
        from pipistrelle.schedulers.placement.selections import Selection  # help needs it not

        Selection(texts, param.opts[0])
    return texts


_TEXTS: Final = {
    "order": f"NAME\tReplace the queue's order: {', '.join(PARTS['order'])}.",
    "backfill": f"NAME\tReplace the backfilling rule: {', '.join(PARTS['backfill'])}.",
    "placement": f"NAME[,KEY=VALUE...]\tReplace how units are picked: {', '.join(PARTS['placement'])}; as "
    "contiguous,fit=best.",
    "node_order": "Any placement: how the nodes stand in a line whose first free ones go first ('pipistrelle help "
    "placing').",
    "age_aware": "Any placement: stable nodes stand first, the order kept within each kind.",
    "dual_ended": "CONDITION\tAny placement: jobs that get nodes from the line's other end, as 'nodes<=16 or "
    "accounts=a,b'; may be repeated.",
    "base_order": "CONDITION\tAny placement: jobs for which --age-aware changes nothing; may be repeated.",
    "reliability_target": "CHANCE\tAny placement: a job gets no nodes on which its chance of finishing, by their "
    "MTTF, is below this.",
    "formula": "TEXT\tOrder pbs: sort the queue by this, highest first ('pipistrelle help pbs').",
    "queue_priority": "QUEUE=NUMBER\tOrder pbs: the queue's priority, else 0; may be repeated.",
    "fairshare_entity": "Order pbs: whom usage is charged to.",
    "fairshare_shares": "ENTITY=SHARES\tOrder pbs: the entity's shares; may be repeated.",
    "unknown_shares": "SHARES\tOrder pbs: the shares of all entities together that have none of their own.",
    "fairshare_decay_time": "TIME\tOrder pbs: how often usage fades, as 24h or 168:00:00; with a factor of 0.5 its "
    "half-life; 0: never.",
    "fairshare_decay_factor": "FACTOR\tOrder pbs: what usage is multiplied by each time.",
    "backfill_depth": "JOBS\tBackfilling rule depth: how many of the first jobs have a reservation; with 0 nobody "
    "passes.",
    "strict_ordering": "Backfilling rule depth: without it, all that fits starts in the order of the queue, no "
    "reservations.",
    "reliability": "NAME|FILE|auto\tKeep jobs in partitions of nodes by reliability, for classes of jobs: "
    "'intrepid-classes', a TOML file, or auto: those of the jobs seen.",
    "blocking": "CHANCE\tWith --reliability: size partitions for this chance of blocking; default: 0.",
    "admission": "With --reliability: jobs wait for their partition (type IV), or are refused if they cannot start at "
    "once (type I); default: queue.",
    "preempt_type": "Let waiting jobs take units from running ones: by lists of QOS (--preempt), or by tiers of queues "
    "(--priority-tier); 'pipistrelle help preemption'.",
    "preempt_mode": "MODE|NAME=MODE\tHow jobs are preempted, or those of a QOS or queue: requeue, checkpoint, cancel "
    "or off; default: requeue; repeatable.",
    "preempt": "QOS=QOS[|QOS...]\tWith --preempt-type qos: whom the jobs of a QOS may preempt; repeatable.",
    "priority_tier": "NAME=NUMBER\tThe tier of a queue or QOS, else 1, or the priority of the machine's class; lower "
    "ones are preempted first; repeatable.",
    "preempt_grace": "TIME|NAME=TIME\tHow long a job goes on when it is preempted; default: no time; repeatable.",
    "preempt_exempt_time": "TIME\tHow long a job runs at least before it may be preempted; default: no time.",
    "preempt_youngest_first": "Preempt those first that were started last, not the largest.",
    "config": "FILE\tScheduler or order maui: a maui.cfg ('pipistrelle help maui'); default: Maui's defaults.",
    "strict_config": "Refuse a --config with anything that is unknown, or would change decisions if it were supported; "
    "leniently that is a warning.",
    "poll": "TIME\tDecide only at the multiples of this, as 5s; default: whenever something happens.",
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
                "poll": _readable(step_of),
            },
            OPPOSITES,
            completions={axis: completed(axis) for axis in PARTS} | {"reliability": completed("classes", or_file=True)},
        )
    ),
)

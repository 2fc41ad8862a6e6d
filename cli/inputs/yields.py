"""``pipistrelle failures yield``: share of node time that does useful work."""

from typing import Any

import click

from pipistrelle.cli.options.fields import Choice
from pipistrelle.cli.options.sections import Command
from pipistrelle.cli.terminal.console import print_json, print_table
from pipistrelle.models.workloads.options import parse_factor
from pipistrelle.platforms.failures.yield_model import MOST_NODES, Allocation, YieldError
from pipistrelle.protocol.base.errors import said_of
from pipistrelle.protocol.base.lengths import length_text, parse_seconds
from pipistrelle.studies.trials.lifetimes import Estimate, WaitRow, YieldRow, wait_rows, yield_rows
from pipistrelle.traces.resilience import parse_resilience


@click.command(cls=Command)
@click.option(
    "--nodes",
    required=True,
    type=click.IntRange(1, MOST_NODES),
    help="Number of nodes that the application is allocated, including spares.",
)
@click.option("--mtbf", required=True, metavar="TIME", help="Mean time between failures of a node, such as 20y.")
@click.option(
    "--dump", required=True, metavar="TIME", help="Time that the application needs to write a checkpoint, such as 2min."
)
@click.option(
    "--read",
    metavar="TIME",
    show_default="same as --dump",
    help="Time that the application needs to read a checkpoint.",
)
@click.option(
    "--checkpoint",
    "optimum",
    type=Choice(["young", "daly"]),
    default="young",
    help="Formula for the checkpoint interval.",
)
@click.option(
    "--spares",
    metavar="N|SHARE%",
    show_default="the number with the highest yield",
    help="Number of spare nodes among the allocated ones, or percentage of them.",
)
@click.option(
    "--waits",
    metavar="TIMES",
    default="0.1h,1h,10h,24h,100h",
    help="Times in the queue before a new allocation, separated by commas: one result for each.",
)
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="PERCENTAGE",
    help="Print the longest queue wait that still allows this yield (useful share of node time): 89%; repeatable.",
)
@click.option("--exact", is_flag=True, help="Compute the exact expected yield, instead of a first-order approximation.")
@click.option(
    "--simulate",
    metavar="N",
    type=click.IntRange(10, 100_000),
    help="Also simulate N allocations, to check each computed yield.",
)
@click.option("--seed", type=click.IntRange(min=0), show_default="1", help="With --simulate: random seed.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON (times in seconds) instead of tables.")
def command(
    nodes: int,
    mtbf: str,
    dump: str,
    read: str | None,
    optimum: Any,
    spares: str | None,
    waits: str,
    targets: tuple[str, ...],
    exact: bool,
    simulate: int | None,
    seed: int | None,
    as_json: bool,
) -> None:
    """Compute the share of node time in which an application with spare nodes does useful work.

    This share is called yield. Waits for new allocations count as node time. A failure costs one node and the work
    since the last checkpoint. When too few nodes are left, the application waits in the queue for a new allocation. A
    rigid application runs on a fixed number of nodes and keeps spares. A moldable one runs on all nodes that are up. A
    grid application runs on the largest rectangle of nodes that are up.
    """
    if seed is not None and simulate is None:
        raise click.UsageError("--seed needs --simulate, because nothing else is random.")
    dumping = _time(dump, "--dump")
    allocation = Allocation(
        nodes, _time(mtbf, "--mtbf"), dumping, dumping if read is None else _time(read, "--read"), optimum
    )
    failures = None if spares is None else _failures(spares, nodes)
    form: Any = "exact" if exact else "paper"
    times = [_time(wait, "--waits") for wait in waits.split(",")]
    bounds = wait_rows(allocation, [_share(target) for target in targets], failures=failures, form=form)
    rows = yield_rows(
        allocation, times, failures=failures, form=form, lifetimes=simulate or 0, seed=1 if seed is None else seed
    )
    if as_json:
        print_json(_document(allocation, form, rows, bounds))
    else:
        _print(allocation, exact, rows, bounds)


def _print(allocation: Allocation, exact: bool, rows: list[YieldRow], bounds: list[WaitRow]) -> None:
    click.echo(
        f"{allocation.nodes:,} nodes, a failure in {_hours(allocation.mtbf_of_all)}; "
        f"dump {allocation.dump:g} s, read {allocation.read:g} s, every {allocation.interval:.0f} s of work"
    )
    head = ["wait", "application", "spares", "% of nodes", "lasts", "yield %"]
    head += ["simulated %"] if rows[0].simulated else []
    lines = []
    for row in rows:
        line = [
            _hours(row.wait),
            row.shape or "no spares",
            f"{row.failures:,}",
            f"{100 * row.failures / allocation.nodes:.2f}",
            _hours(row.length),
            f"{100 * row.share:.2f}",
        ]
        lines.append(line + ([_around(row.simulated)] if row.simulated else []))
    click.echo()
    print_table(f"yield, {'exact' if exact else 'to the first order'}", head, lines, ("application",))
    if bounds:
        click.echo()
        lines = []
        for bound in bounds:
            best = bound.best
            figures = ["-", "none"] if best is None else [f"{best.failures:,}", _hours(best.wait)]
            lines.append([f"{100 * bound.target:g} %", bound.shape or "no spares", *figures])
        columns = ["yield", "application", "spares", "wait"]
        print_table("largest wait for a yield", columns, lines, ("application",))


def _document(allocation: Allocation, form: str, rows: list[YieldRow], bounds: list[WaitRow]) -> dict[str, Any]:
    return {
        "nodes": allocation.nodes,
        "mtbf": allocation.mtbf,
        "dump": allocation.dump,
        "read": allocation.read,
        "checkpoint": allocation.optimum,
        "interval": allocation.interval,
        "form": form,
        "yields": [
            {
                "wait": row.wait,
                "application": row.shape or "no spares",
                "spares": row.failures,
                "length": row.length,
                "yield": row.share,
                "simulated": row.simulated and row.simulated._asdict(),
            }
            for row in rows
        ],
        "largest_waits": [
            {
                "target": bound.target,
                "application": bound.shape or "no spares",
                "spares": bound.best and bound.best.failures,
                "wait": bound.best and bound.best.wait,
            }
            for bound in bounds
        ],
    }


def _hours(seconds: float) -> str:
    return length_text(seconds, {"h": "{:.4g} h"})


def _around(estimate: Estimate) -> str:
    return f"{100 * estimate.value:.2f} +- {100 * estimate.half:.2f}"


def _time(text: str, option: str) -> float:
    """Parse a time of at least 0, in seconds; the error message names the option."""
    return parse_seconds(text, f"time of {option}", or_zero=True)


def _share(text: str) -> float:
    with said_of("--target"):
        return parse_factor(text, "yield")


def _failures(text: str, nodes: int) -> int:
    wanted = parse_resilience(spares=text)
    if wanted.spares is not None and wanted.spares >= nodes:
        raise YieldError(
            "no node is left to work",
            where="--spares",
            expected=f"fewer spares than nodes, 1 to {nodes - 1:,}" if nodes > 1 else "2 nodes or more",
            found=f"{wanted.spares:,} of {nodes:,}",
        )
    return wanted.tolerated(nodes)

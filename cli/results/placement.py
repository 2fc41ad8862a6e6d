"""``pipistrelle explain placement``, ``order`` and ``titan``."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from pipistrelle.cli.options.fields import Choice, TimeOfRun, together
from pipistrelle.cli.options.files import all_json_option
from pipistrelle.cli.options.sections import Command
from pipistrelle.cli.terminal.console import cells, import_numpy, print_below, print_json, print_table, show
from pipistrelle.cli.terminal.guard import FILE, FILE_OR_FOLDER, FilledPath, refuse_overwriting

if TYPE_CHECKING:
    from pipistrelle.reports.placement.run import PlacedRun

_ORDERS: Final = ("id", "snake", "hilbert", "alps")
_NO_STABLE: Final = (
    "stable nodes: not known, because the platform gives no class, MTTF or age of nodes (--node-table adds them)"
)
_run_argument: Final = click.argument("run", metavar="RUN", type=FILE_OR_FOLDER)
_own_list: Final = together(
    click.option(
        "--run-order", type=Choice(_ORDERS), show_default="as RUN recorded", help="Order in which RUN tried the nodes."
    ),
    click.option(
        "--run-age-aware/--no-run-age-aware",
        default=None,
        show_default="as RUN recorded",
        help="Whether RUN tried stable nodes (those that fail rarely) first.",
    ),
)


@click.command("placement", cls=Command)
@_run_argument
@_own_list
@all_json_option
@click.option("--jobs", type=FILE, help="Also write a CSV file with one line per job.")
@click.option("--picture", type=FILE, help="Draw the nodes and the jobs on them, as .svg or .png.")
@click.option("--links", is_flag=True, help="Estimate the load of each network link (torus or mesh only).")
@click.option(
    "--at",
    type=TimeOfRun(),
    metavar="TIME",
    show_default="when the most jobs run",
    help="Simulated time that --picture and --links show.",
)
def report_command(
    run: Path,
    run_order: str | None,
    run_age_aware: bool | None,
    as_json: bool,
    jobs: Path | None,
    picture: Path | None,
    links: bool,
    at: float | None,
) -> None:
    """Report which nodes the jobs used, and which failures hit them.

    RUN is the output folder of a run. The report shows the mean number of network hops between two nodes of a job, and
    how many of its nodes are stable (fail rarely). It also puts the nodes, in the order in which the run tried them,
    into twenty groups of equal size, and shows how long jobs used the nodes of each group.
    """
    import_numpy()
    from pipistrelle.reports.placement.pictures import busiest_time, is_picture
    from pipistrelle.reports.placement.pictures import picture as draw
    from pipistrelle.reports.placement.report import job_figures, report
    from pipistrelle.reports.placement.run import list_order, read_placed_run
    from pipistrelle.traces.files import write_trace

    if picture is not None and not is_picture(picture):
        raise click.UsageError(f"--picture draws SVG or PNG: name an .svg or .png file, not '{picture.name}'.")
    if at is not None and picture is None and not links:
        raise click.UsageError("--at needs --picture or --links, which show this simulated time.")
    files = [path for path in (jobs, picture) if path is not None]
    refuse_overwriting([str(path) for path in run.glob("out_*")] if run.is_dir() else [], files)
    placed = read_placed_run(run)
    figures = job_figures(placed)
    own = _list_of(placed, run_order, run_age_aware)
    told = report(placed, figures, *own)
    moment = busiest_time(placed) if at is None else at
    if links:
        from pipistrelle.reports.placement.links import job_links, link_report

        order = list_order(placed.machine, *own)
        loads = job_links(placed, order)
        figures |= loads
        told["links"] = link_report(placed, order, loads, moment)
    if jobs is not None:
        write_trace(jobs, _csv(figures))
    if picture is not None:
        write_trace(picture, [draw(placed, moment, picture.suffix)])
    if as_json:
        print_json(told)
        return
    _print_report(told)
    if links:
        _print_links(told["links"])
    for what, path in (("jobs", jobs), ("picture", picture)):
        if path is not None:
            show(f"{what} in {path}")


@click.command("order", cls=Command)
@_run_argument
@click.option(
    "--node-order",
    type=Choice(_ORDERS),
    required=True,
    help="Other order in which to try the nodes ('pipistrelle help placing').",
)
@click.option("--age-aware", is_flag=True, help="With --node-order: try stable nodes (those that fail rarely) first.")
@_own_list
@all_json_option
def order_command(
    run: Path, node_order: str, age_aware: bool, run_order: str | None, run_age_aware: bool | None, as_json: bool
) -> None:
    """Estimate which jobs the failures of RUN would have hit if nodes had been tried in another order.

    RUN is the output folder of a run with failures. 'pipistrelle help placing' explains the orders.
    """
    import_numpy()
    from pipistrelle.reports.placement.report import whatif
    from pipistrelle.reports.placement.run import read_placed_run

    placed = read_placed_run(run)
    told = whatif(placed, node_order, age_aware, own=_list_of(placed, run_order, run_age_aware))
    if as_json:
        print_json(told)
        return

    rows = [
        [*cells(one, "month", "failures"), *(text for key in ("", "other_") for text in _struck(one, key))]
        for one in told["months"]
    ]
    own, other = (_named(told, key) for key in ("", "other_"))
    columns = ["month", "failures", *(f"{what}, {name}" for name in (own, other) for what in ("of jobs", "leadership"))]
    print_table("Failures that struck jobs", columns, rows, columns[:1])


@click.command("titan", cls=Command)
@click.option(
    "--lives",
    metavar="FILE",
    type=FilledPath(),
    help="Also compute failure rates from Titan's GPU log (TitanGPULife).",
)
@click.option(
    "--begin",
    default="2017-08-01",
    metavar="DATE",
    help="With --lives: start date of the period for failure rates.",
)
@click.option(
    "--end", default="2017-12-01", metavar="DATE", help="With --lives: end date of the period for failure rates."
)
@all_json_option
def titan_command(lives: str | None, begin: str, end: str, as_json: bool) -> None:
    """Repeat a paper's calculations about failures of Titan's GPUs.

    The paper is Zimmer et al. (2018).
    """
    import_numpy()
    from pipistrelle.reports.placement.stability import (
        LEADERSHIP_HOURS,
        MORE_STABLE,
        STABLE_SHARE,
        TABLE_II,
        TABLE_II_RATIO,
        failure_share,
        rates_of,
        table_ii,
    )
    from pipistrelle.runs.inputs.outages import clock_time
    from pipistrelle.traces.outages.load import load_outage_log

    ratios = {"Table II": TABLE_II_RATIO}
    if lives is not None:
        log = load_outage_log(lives)
        ratios[f"{begin} to {end}"] = rates_of(log, clock_time(log, begin), clock_time(log, end)).ratio
    shares: list[dict[str, Any]] = [
        {"rates": name, "ratio": ratio, "share": failure_share(LEADERSHIP_HOURS, STABLE_SHARE, MORE_STABLE, ratio)}
        for name, ratio in ratios.items()
    ]
    hours: list[dict[str, Any]] = [
        {"new": new, "hours": value, "printed": TABLE_II[new]} for new, value in table_ii().items()
    ]
    if as_json:
        print_json({"table_ii": hours, "leadership_share_of_failures": shares})
        return

    rows = [cells(one, "new:,", "hours:.3f", "printed:.1f") for one in hours]
    print_table("MTBF of a job on 4,000 nodes, hours", ["new GPUs", "computed", "Table II"], rows, [])
    parts = [[one["rates"], f"{one['ratio']:.2f}", f"{100 * one['share']:.1f} %"] for one in shares]
    title = "Failures that strike leadership jobs: 55 % before, with a third more stable hours"
    print_below(title, ["rates", "an old GPU fails, times", "after"], parts)


def _list_of(run: "PlacedRun", order: str | None, age_aware: bool | None) -> tuple[str, bool]:
    return order or run.order, run.age_aware if age_aware is None else age_aware


def _csv(figures: dict[str, Any]) -> Iterable[bytes]:
    columns = {name: column for name, column in figures.items() if column is not None}
    yield (",".join(columns) + "\n").encode()
    lists = [column if isinstance(column, list) else column.tolist() for column in columns.values()]
    for row in zip(*lists, strict=True):
        yield (",".join(map(_cell, row)) + "\n").encode()


def _cell(value: str | float | None) -> str:
    return value if isinstance(value, str) else "" if value is None else repr(value)


def _print_links(told: dict[str, Any]) -> None:
    """Print link loads (in units of one node's traffic) and rates in bytes/s."""
    for one in told["traffics"]:
        name = one["traffic"].replace("_", " ")
        rows = [
            cells(size, "sizes", "jobs:,", "mean_load:.4g", "mean_rate:.4g", "least_rate:.4g") for size in one["sizes"]
        ]
        columns = ["sizes", "jobs", "busiest link's load, mean", "bytes/s a node, mean", "least"]
        print_below(f"Links by size of jobs, each job alone: {name}", columns, rows)
        rows = []
        forms = ("links:,", "used:,", "shared:,", "mean_load:.4g", "busiest_load:.4g", "jobs_on_it", "rate:.4g")
        for each in one["dimensions"]:
            dimension = each["dimension"]
            rows.append(["xyz"[dimension] if len(one["dimensions"]) <= 3 else str(dimension), *cells(each, *forms)])
        columns = ["dimension", "links", "used", "by several jobs", "mean load"]
        columns += ["busiest", "its jobs", "bytes/s a node"]
        print_below(f"Links, {told['jobs']:,} jobs at {told['time']:g} s: {name}", columns, rows)


def _print_report(told: dict[str, Any]) -> None:
    stable = told["stable_nodes"]
    where = f"{told['nodes']:,} nodes of kind {told['topology']} in the order {_named(told, '')}"
    show(f"{told['jobs']:,} jobs on {where}")
    show(f"mean hops of the whole machine {told['machine_mean_hops']:.4f}")
    show(_NO_STABLE if stable is None else f"{stable:,} stable nodes")
    rows = []
    for one in told["sizes"]:
        spread = one["stable_nodes"]
        shared = "-" if spread is None else f"{spread['min']:,}, {spread['mean']:,.1f}, {spread['max']:,}"
        rows.append(
            [
                *(*cells(one, "sizes", "jobs:,", "node_hours:,.0f", "mean_hops:.3f"), shared),
                *cells(one, "stable_node_hours:,.0f", "stable_node_hours_per_week:,.0f", "failures:,"),
            ]
        )
    stable_columns = ["stable nodes: min, mean, max", "stable node-hours", "a week"]
    print_below(
        "Jobs by share of the machine", ["sizes", "jobs", "node-hours", "mean hops", *stable_columns, "failures"], rows
    )
    parts = [
        [
            f"{one['from']:,} to {one['to']:,}",
            f"{one['hours_per_node']:,.2f}",
            "-" if one["stable_share"] is None else f"{100 * one['stable_share']:.1f}",
        ]
        for one in told["positions"]
    ]
    print_below("Hours by position in the list of nodes", ["positions", "hours a node", "stable, %"], parts)
    if told["months"]:
        months = [[one["month"], str(one["failures"]), *_struck(one, "")] for one in told["months"]]
        print_below("Failures by month", ["month", "failures", "of jobs", "of leadership jobs"], months)


def _named(told: dict[str, Any], prefix: str) -> str:
    return f"{told[f'{prefix}node_order']}{', stable first' if told[f'{prefix}age_aware'] else ''}"


def _struck(one: dict[str, Any], prefix: str) -> tuple[str, str]:
    share = one[f"{prefix}leadership_share"]
    large = one[f"{prefix}of_leadership_jobs"]
    return str(one[f"{prefix}of_jobs"]), f"{large}" if share is None else f"{large} ({100 * share:.1f} %)"

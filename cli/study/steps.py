"""``pipistrelle study steps``: error of deciding only at multiples of a time step."""

from pathlib import Path
from typing import Any, Final

import click

from pipistrelle.cli.options.files import all_json_option, csv_option, reading_options
from pipistrelle.cli.options.parts import part_options
from pipistrelle.cli.options.sections import INPUTS, Command, in_section
from pipistrelle.cli.options.shared import scheduler_option
from pipistrelle.cli.run.described import blamed, described, spec_file, transform_option
from pipistrelle.cli.terminal.console import import_numpy, print_json, print_table, say
from pipistrelle.cli.terminal.guard import refuse_overwriting

_MEASURES: Final = ("mean", "median", "deviation", "mean_absolute")


@click.command(
    cls=Command,
    common=("workload", "platform", "scheduler", "weeks", "steps", "warm_up", "as_json", "as_csv", "quiet"),
)
@spec_file("scheduler")
@in_section(
    INPUTS,
    click.option("-w", "--workload", metavar="NAME|FILE", multiple=True, default=["demo"], help="Log to simulate."),
    reading_options,
    transform_option,
    click.option(
        "-p", "--platform", metavar="NAME|FILE", show_default="machine of the workload", help="Machine to simulate."
    ),
)
@scheduler_option("Scheduler: bundled name, file.toml or file.py:CLASS.", default="easy")
@part_options
@click.option(
    "--week",
    "weeks",
    type=click.IntRange(1),
    multiple=True,
    show_default="2",
    help="Week of the log to simulate: 1 is the first; repeatable.",
)
@click.option(
    "--step",
    "steps",
    multiple=True,
    metavar="TIME",
    show_default="60s, 30s, 10s, 5s, 1s",
    help="Time step: interval at which the scheduler decides, such as 60s; repeatable.",
)
@click.option(
    "--warm-up", default="7d", metavar="TIME", help="Time before each week that is also simulated, but not reported."
)
@all_json_option
@csv_option("Also write a CSV file: how far waits are from the log's and from those without time steps.")
@click.option("-q", "--quiet", is_flag=True, help="Do not show progress.")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    spec_file: Path | None,
    weeks: tuple[int, ...],
    steps: tuple[str, ...],
    warm_up: str,
    as_json: bool,
    as_csv: Path | None,
    quiet: bool,
    **options: Any,
) -> None:
    """Measure the error of a scheduler that decides only at multiples of a time step.

    Each chosen week is simulated once with decisions at every event, and once for each time step. Every simulation
    begins with a warm-up before the week. The report compares the waits of the week's jobs with their waits in the log,
    and with their waits under decisions at every event.

    \b
    pipistrelle study steps -w KTH-SP2-1996-2.1-cln.swf.gz --week 6 --week 7 --week 29
    """
    refuse_overwriting([], [as_csv])
    import_numpy()
    from pipistrelle.protocol.base.errors import said_of
    from pipistrelle.protocol.base.lengths import parse_seconds
    from pipistrelle.reports.report.time_steps import STEPS, time_steps

    with said_of("--warm-up"):
        before = parse_seconds(warm_up, or_zero=True)
    spec = described(ctx, spec_file, options)
    if spec.poll is not None:
        raise click.UsageError("--step sets the time steps: omit --poll.")
    tell = (lambda text: None) if quiet else say
    with blamed(spec_file, spec, ctx):
        spec.make_policy()
    rows = list(time_steps(spec, weeks or (2,), steps or STEPS, warm_up=before, tell=tell))
    if as_csv is not None:
        _write(as_csv, rows)
    if as_json:
        print_json(rows)
        return
    _print(rows)


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    from pipistrelle.traces.files import write_trace

    names = [f"{against}_{name}" for against in ("log", "events") for name in _MEASURES]
    lines = [",".join(["week", "step", "jobs", *names, "asked"])]
    for row in rows:
        cells = [str(row["week"]), row["step"] or "", str(row["jobs"])]
        for against in ("against_log", "against_events"):
            found = row[against] or dict.fromkeys(_MEASURES)
            cells += ["" if found[name] is None else repr(found[name]) for name in _MEASURES]
        lines.append(",".join([*cells, str(row["asked"])]))
    write_trace(path, [f"{line}\n".encode() for line in lines])


def _print(rows: list[dict[str, Any]]) -> None:
    table = []
    for row in rows:
        cells = [f"{row['week']}" if row["step"] is None else "", row["step"] or "events", f"{row['jobs']:,}"]
        for against in ("against_log", "against_events"):
            found = row[against] or dict.fromkeys(_MEASURES)
            cells += ["-" if found[name] is None else f"{found[name]:,.0f}" for name in _MEASURES[:3]]
        table.append((*cells, f"{row['asked']:,}", f"{row['seconds']:.1f}"))
    means = ("mean", "median", "dev.")
    heads = ("week", "step", "jobs", *(f"{name}: log" for name in means), *(f"{name}: events" for name in means))
    print_table("Errors of waits (s)", (*heads, "asked", "wall (s)"), table, ())

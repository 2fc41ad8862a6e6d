"""``pipistrelle explain accuracy``: compare simulated waits with waits in the log."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from pipistrelle.cli.options.files import all_json_option, csv_option, reading_options
from pipistrelle.cli.options.sections import Command
from pipistrelle.cli.terminal.console import import_numpy, print_json, print_table, show
from pipistrelle.cli.terminal.guard import FILE, FILE_OR_FOLDER, refuse_overwriting

if TYPE_CHECKING:
    from pipistrelle.reports.report.reality import Beside

_MEASURES: Final = ("jobs", "mean", "median", "deviation", "mean_absolute", "p05", "p25", "p75", "p95")


@click.command(cls=Command)
@click.argument("run", type=FILE_OR_FOLDER)
@click.argument("log")
@reading_options
@click.option(
    "--warm-up", default="7d", metavar="TIME", help="Ignore jobs submitted less than TIME after the first one."
)
@click.option("--until", metavar="TIME", help="Ignore jobs submitted more than TIME after the first one.")
@click.option(
    "--by",
    multiple=True,
    metavar="WHAT",
    help="Also show groups of jobs: by week, size, runtime, user, queue, ...; repeatable.",
)
@all_json_option
@csv_option("Also write a CSV file: how far waits are from those in the log, one line per group of jobs.")
@click.option(
    "--cdf", type=FILE, metavar="FILE.csv", help="Also write a CSV file: the distributions of real and simulated waits."
)
@click.option(
    "--curves", type=FILE, metavar="FILE.csv", help="Also write a CSV file: utilisation and queue length over time."
)
@click.option(
    "--step", default="1h", metavar="TIME", help="Interval over which utilisation and queue length are averaged."
)
@click.option(
    "--jobs", type=FILE, metavar="FILE.csv", help="Also write a CSV file: the real and the simulated wait of each job."
)
def command(
    run: Path,
    log: str,
    warm_up: str,
    until: str | None,
    by: tuple[str, ...],
    as_json: bool,
    as_csv: Path | None,
    cdf: Path | None,
    curves: Path | None,
    step: str,
    jobs: Path | None,
    **reading: Any,
) -> None:
    """Compare the simulated waits of a run with the waits in the log.

    RUN is the output folder of a run; LOG is the log that was simulated. The error of a wait is the simulated wait
    minus the real wait. The report shows these errors, the distributions of simulated and real waits, and simulated
    and real utilisation and queue length.

    \b
    pipistrelle explain accuracy pipistrelle-out/KTH-easy-1 KTH-SP2-1996-2.1-cln.swf.gz
    """
    refuse_overwriting([log], [as_csv, cdf, curves, jobs])
    import_numpy()
    from pipistrelle.protocol.base.errors import said_of
    from pipistrelle.protocol.base.lengths import parse_seconds
    from pipistrelle.reports.report import accuracy as figures
    from pipistrelle.reports.report.reality import beside
    from pipistrelle.runs.folders.run_jobs import read_run_jobs
    from pipistrelle.runs.inputs.named import load_workload

    with said_of("--warm-up"):
        warm = parse_seconds(warm_up, or_zero=True)
    with said_of("--until"):
        end = None if until is None else parse_seconds(until)
    with said_of("--step"):
        stretch = parse_seconds(step)
    trace = load_workload(log, **reading)
    both = beside(read_run_jobs(run), trace)
    found = figures.accuracy(both, warm_up=warm, until=end, by=by, step=stretch)
    chosen = figures.counted_jobs(both, warm, end)
    real, simulated = both.real[chosen], both.simulated[chosen]
    if as_csv is not None:
        _write_measures(as_csv, found)
    if cdf is not None:
        rows = figures.distributions(real, simulated).tolist()
        _write(cdf, "wait,real,simulated", [",".join(map(repr, row)) for row in rows])
    if curves is not None:
        table = figures.curves(both, stretch).tolist()
        _write(curves, ",".join(figures.CURVES), [",".join(map(repr, row)) for row in table])
    if jobs is not None:
        _write_jobs(jobs, both)
    if as_json:
        print_json(found)
        return
    _print(found)


def _write(path: Path, header: str, lines: list[str]) -> None:
    from pipistrelle.traces.files import write_trace

    write_trace(path, [f"{line}\n".encode() for line in (header, *lines)])


def _write_measures(path: Path, found: dict[str, Any]) -> None:
    """Write the errors of waits: one line for all jobs, and one per group of jobs."""
    from pipistrelle.server.outputs.csv_file import csv_text

    rows = [("all", "", found["all"])]
    rows += [(name, one["class"], one) for name, classes in found["classes"].items() for one in classes]
    names = (*_MEASURES, "shorter", "same", "longer", "distance")
    lines = []
    for kind, name, one in rows:
        cells = ["" if one[key] is None else repr(one[key]) for key in names]
        waits = [repr(one[side][key]) for side in ("real", "simulated") for key in ("mean", "median", "p95", "most")]
        lines.append(",".join([kind, csv_text(name), *cells, *waits]))
    waits = [f"{side}_{key}" for side in ("real", "simulated") for key in ("mean", "median", "p95", "most")]
    _write(path, ",".join(["by", "class", *names, *waits]), lines)


def _write_jobs(path: Path, both: "Beside") -> None:
    """Write a line for each job that is both in the run and in the log.

    This includes jobs that the report leaves out.
    """
    from pipistrelle.server.outputs.csv_file import csv_text

    ids = [both.run.ids[place] for place in both.places.tolist()]
    columns = (both.submit, both.size, both.real, both.simulated, both.simulated - both.real)
    rows = zip(ids, *(column.tolist() for column in columns), strict=True)
    lines = [",".join([csv_text(name), *map(repr, values)]) for name, *values in rows]
    _write(path, "job_id,submission_time,size,real_wait,simulated_wait,error", lines)


def _print(found: dict[str, Any]) -> None:
    all_jobs = found["all"]
    show(f"{found['scheduler']} beside the log: {all_jobs['jobs']:,} jobs", "bold")
    for why, count in found["left_out"].items():
        if count:
            show(f"  left out: {count:,} {why}")
    rows = [("all", *_cells(all_jobs))]
    rows += [(f"{name} {one['class']}", *_cells(one)) for name, some in found["classes"].items() for one in some]
    columns = ("error of waits (s)", "jobs", "mean", "median", "deviation", "shorter", "same", "longer")
    print_table("", columns, rows, {"error of waits (s)"})
    real, simulated = all_jobs["real"], all_jobs["simulated"]
    rows = [
        (side, *(f"{one[key]:,.0f}" for key in ("mean", "median", "p95", "most")))
        for side, one in (("real", real), ("simulated", simulated))
    ]
    print_table("", ("waits (s)", "mean", "median", "95 %", "most"), rows, {"waits (s)"})
    limits = list(real["share_within"])
    rows = [
        (side, *(f"{100 * one['share_within'][limit]:.1f} %" for limit in limits))
        for side, one in (("real", real), ("simulated", simulated))
    ]
    heads = (f"{float(limit):,.0f} s" for limit in limits)
    print_table("", ("waited at most", *heads), rows, {"waited at most"})
    show(f"largest distance of the two distributions: {100 * all_jobs['distance']:.2f} %")
    rows = []
    for name, one in found["curves"].items():
        if name == "step" or one["real"] is None:
            continue
        scale, unit = (100.0, " %") if name == "utilisation" else (1.0, "")
        cells = (f"{scale * one[key]:,.2f}{unit}" for key in ("real", "simulated", "mean_absolute", "most"))
        rows.append(({"utilisation": "utilisation", "queue": "queued jobs"}[name], *cells))
    print_table("", ("over time", "real", "simulated", "mean distance", "largest"), rows, {"over time"})


def _cells(one: dict[str, Any]) -> tuple[str, ...]:
    means = (one["mean"], one["median"], one["deviation"])
    return (
        f"{one['jobs']:,}",
        *("-" if value is None else f"{value:,.0f}" for value in means),
        *(f"{one[key]:,}" for key in ("shorter", "same", "longer")),
    )

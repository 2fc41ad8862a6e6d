"""``pipistrelle failures plan`` and ``partitions``: partitions of nodes of similar reliability."""

from pathlib import Path
from typing import Any, Literal

import click

from pipistrelle.cli.options.fields import Choice, SvgFile
from pipistrelle.cli.options.files import json_option, reading_options, strict_option
from pipistrelle.cli.options.names import completed
from pipistrelle.cli.options.sections import Command
from pipistrelle.cli.terminal.console import cells, import_numpy, print_below, print_facts, print_json, show
from pipistrelle.cli.terminal.guard import refuse_overwriting

Rows = list[list[str]]


def _numbers(kind: type[float] | type[int]) -> Any:
    """Return a callback that parses comma-separated numbers."""

    def read(ctx: click.Context, param: click.Parameter, text: str | None) -> tuple[Any, ...]:
        try:
            return () if text is None else tuple(kind(part) for part in text.split(","))
        except ValueError:
            example = "16,256" if kind is int else "0,0.1,0.2"
            raise click.BadParameter(
                f"'{text}' is not a list of numbers separated by commas, such as {example}."
            ) from None

    return read


@click.command("plan", cls=Command)
@click.argument("source", metavar="IN", shell_complete=completed("classes", "workload", or_file=True))
@click.option(
    "-p",
    "--platform",
    metavar="NAME|FILE",
    shell_complete=completed("platform", or_file=True),
    help="Machine with the MTTF (mean time to failure) of its nodes.",
)
@reading_options
@strict_option
@click.option(
    "--bins",
    metavar="SIZES",
    callback=_numbers(int),
    help="With a workload: largest size of each class of jobs, such as 16,256,1024.",
)
@click.option("--mttf", metavar="TIME", help="MTTF of nodes for which the platform gives none, such as 10250h.")
@click.option(
    "--blocking",
    metavar="P,P,...",
    default="0,0.1,0.2",
    callback=_numbers(float),
    help="Probabilities that a job finds its partition full: compute partition sizes for each.",
)
@click.option(
    "--probability",
    metavar="P,P,...",
    callback=_numbers(float),
    show_default="0.6, 0.65, ... 0.95 and 0.99",
    help="Probabilities that a job ends without failure: compute the required node MTTF for each.",
)
@click.option(
    "--beta",
    type=click.FloatRange(0.05, 50),
    default=0.7,
    help="Shape parameter of the nodes' times to failure (Weibull); 1: exponential.",
)
@click.option("--dump", metavar="TIME", default="10min", help="Time that a job needs to write a checkpoint.")
@json_option
@click.option("--picture", type=SvgFile(), help="Also draw the plan as an .svg picture.")
def plan_command(
    source: str,
    platform: str | None,
    bins: tuple[int, ...],
    mttf: str | None,
    blocking: tuple[float, ...],
    probability: tuple[float, ...],
    beta: float,
    dump: str,
    as_json: bool,
    picture: Path | None,
    **reading: Any,
) -> None:
    """Compute how reliable the nodes must be for a set of jobs, and how to partition the nodes.

    IN is a workload, or a description of job classes (a bundled name or a TOML file). A workload's jobs are grouped
    into classes by size: by powers of two, or by --bins. Each class gets a partition of its own, with nodes of similar
    reliability.
    """
    import_numpy()
    from pipistrelle.models.reliability.jobs import PROBABILITIES
    from pipistrelle.models.reliability.pictures import svg
    from pipistrelle.models.reliability.plan import PlanOptions, make_plan
    from pipistrelle.protocol.base.lengths import parse_seconds
    from pipistrelle.runs.inputs.demand import load_demand
    from pipistrelle.traces.files import write_trace

    if picture is not None:
        refuse_overwriting([source, platform], [picture])
    options = PlanOptions(
        blocking=blocking,
        probabilities=probability or PROBABILITIES,
        beta=beta,
        dump=parse_seconds(dump, "dump's time"),
    )
    demand, machine = load_demand(source, platform, mttf=mttf, bins=bins, **reading)
    plan = make_plan(demand, machine, options)
    if picture is not None:
        write_trace(picture, [svg(plan).encode()])
    if as_json:
        print_json(plan)
        return
    _print_plan(plan)
    if picture is not None:
        show(f"picture in {picture}")


@click.command("partitions", cls=Command)
@click.argument("source", metavar="CLASSES", shell_complete=completed("classes", or_file=True))
@click.option(
    "-p",
    "--platform",
    metavar="NAME|FILE",
    required=True,
    shell_complete=completed("platform", or_file=True),
    help="Machine with the MTTF (mean time to failure) of each node.",
)
@click.option("--seed", type=click.IntRange(min=0), default=1, help="Random seed.")
@click.option("--duration", metavar="TIME", show_default="as in CLASSES", help="Time to simulate.")
@click.option(
    "--blocking",
    type=click.FloatRange(0, 1),
    default=0.0,
    help="Accepted probability that a job finds its partition full: more than 0 gives smaller partitions.",
)
@click.option(
    "--admission",
    type=Choice(("queue", "block")),
    default="block",
    help="What happens to jobs that cannot start at once: they are queued, or rejected (block).",
)
@click.option("--every", metavar="TIME", default="1h", help="Time between two failures in the machine.")
@click.option("--repair", metavar="TIME", default="1h", help="Duration of a repair.")
@json_option
def partitions_command(
    source: str,
    platform: str,
    seed: int,
    duration: str | None,
    blocking: float,
    admission: Literal["queue", "block"],
    every: str,
    repair: str,
    as_json: bool,
) -> None:
    """Compare random placement with partitions of nodes of similar reliability.

    Both placements get the same random jobs of CLASSES and the same failures. One random node fails at each multiple of
    --every, and the job on it fails too. A node's probability of failing is proportional to 1 / MTTF.
    """
    import_numpy()
    from pipistrelle.models.workloads.classes import load_classes
    from pipistrelle.protocol.base.lengths import parse_seconds
    from pipistrelle.reports.placement.partitions import compare
    from pipistrelle.runs.inputs.named import load_platform

    hour = 3600.0
    found = compare(
        load_classes(source),
        load_platform(platform),
        seed=seed,
        duration=duration,
        blocking=blocking,
        admission=admission,
        every=parse_seconds(every, "time between failures") / hour,
        repair=parse_seconds(repair, "repair time") / hour,
    )
    if as_json:
        print_json(found)
        return
    _print_comparison(found)


def _print_comparison(found: dict[str, Any]) -> None:
    stable = "" if found["stable"] else ": unstable, a queue grows without end"
    print_facts(
        [
            ("classes", f"{found['name']}, seed {found['seed']}, {found['hours']:,.0f} h"),
            ("machine", found["platform"]),
            ("offered load", f"{found['load']:.4f}{stable}"),
            ("failures", f"{found['failures']:,}, the same in both runs"),
            ("failures of idle nodes", " and ".join(f"{count:,}" for count in found["idle"])),
            ("utilisation", " and ".join(f"{100 * share:.1f} %" for share in found["utilisation"])),
        ]
    )
    columns = ["partition", "units", "MTTF, h", "jobs hit", "after", "refused", "after", "hits/unit-h", "95 %", "form"]
    rows = []
    for one in [*found["partitions"], {**found["all"], "partition": "all"}]:
        units = cells(one, "units:,", "mttf:,.2f") if "units" in one else ["", ""]
        counts = [f"{count:,}" for name in ("failed", "refused") for count in one[name]]
        told = ["-", "-"]
        if one["change"] is not None:
            told = [_percent(one["change"]), f"{_percent(one['low'])} to {_percent(one['high'])}"]
        form = _percent(one["closed"]) if "closed" in one else ""
        rows.append([str(one["partition"] or "whole"), *units, *counts, *told, form])
    title = "Random nodes, and partitions after: jobs hit, and how their failures per unit-hour change"
    print_below(title, columns, rows)
    if any(one.get("printed") for one in found["partitions"]):
        columns = ["partition", "failures", "after", "change", "form", "failed jobs", "after"]
        rows = []
        for one in found["partitions"]:
            if one.get("printed"):
                before, after, jobs, then = one["printed"]
                change = [_percent(after / before - 1), _percent(one["closed"])]
                rows.append([str(one["partition"]), f"{before:,}", f"{after:,}", *change, f"{jobs:,}", f"{then:,}"])
        print_below("Table 5.2 of the thesis; 'pipistrelle help reliability' explains the difference", columns, rows)


def _percent(share: float) -> str:
    return f"{100 * share:+.1f} %"


def _print_plan(plan: dict[str, Any]) -> None:
    stable = "" if plan["stable"] else ": unstable, a queue grows without end"
    print_facts(
        [
            ("classes", plan["name"]),
            ("machine", f"{plan['nodes']:,} nodes, {plan['units']:,} units"),
            ("mean time to failure", _text(plan["mttf"], " h")),
            ("offered load", f"{plan['load']:.4f}{stable}"),
        ]
    )
    columns = ["class", "size", "jobs/h", "service, h", "95 %, h", "Erlang", "units", "unit-h", "rank"]
    forms = ("class", "size:,", "rate:.3f", "service:.3f", "service_95:.3f", "erlang:.3f", "load:,.1f", "cost:,.3f")
    rows = [cells(one, *forms, "rank") for one in plan["classes"]]
    print_below("Classes: their loads, and ranks by size x what 95 % take", columns, rows)
    chances = [f"{chance:g}" for chance in plan["required"]["probabilities"]]
    for key, title in (("mttf", "for size x time"), ("in_series", "for nodes in series")):
        rows = [[one["class"], *(f"{hours:.4g}" for hours in one[key])] for one in plan["required"]["classes"]]
        print_below(f"Mean time to failure (h) of a node so that jobs last, {title}", ["class", *chances], rows)
    print_below("Units by chance of blocking, types I and IV; II and III, by size, by equation 3.14", *_capacity(plan))
    print_below(
        "Chance of blocking: in units of its own, linear and exact; and where all share the machine", *_blocking(plan)
    )
    columns = ["class", "for", "servers", "waits", "queue", "wait, h", "3.17", "3.18", "3.19, s"]
    print_below(
        "Queues: Erlang's C, and equations 3.17 to 3.19 as printed, whose waits are none", columns, _queueing(plan)
    )
    for parts in plan["partitions"]:
        columns = ["partition", "of class", "units", "MTTF, h", "serves first"]
        title = f"Partitions for {parts['blocking']:g}; whole machine: {', '.join(parts['whole']) or 'none'}"
        rows = [
            [*cells(one, "partition", "class", "size:,", "mttf:,.2f"), " ".join(one["serves"]) or "-"]
            for one in parts["partitions"]
        ]
        print_below(title, columns, [*rows, ["extra", "-", f"{parts['extra']:,}", "-", "-"]])
    if plan["mttf"] is not None:
        _print_served(plan["served"])


def _print_served(served: dict[str, Any]) -> None:
    columns = ["class", "partition", "before, h", "after, h", "ratio", "lasts", "after", "in series", "after"]
    forms = ["mttf_before:.2f", "mttf_after:.2f", "ratio:.3f"]
    forms += [f"{law}_{when}:.4f" for law in ("reliability", "series") for when in ("before", "after")]
    rows = [[one["class"], str(one["partition"] or "whole"), *cells(one, *forms)] for one in served["classes"]]
    print_below(
        f"Nodes' mean time to failure, and the chance that a job lasts; for {served['blocking']:g}", columns, rows
    )
    columns = ["class", "interval, min", "after", "node-min/h", "by the job: min", "after", "node-min/h"]
    rows = []
    for one in served["classes"]:
        rows.append([one["class"]])
        for by in (one["node"], one["job"]):
            rows[-1] += [*cells(by, "interval_before:.2f", "interval_after:.2f"), _signed(by["cost_change"])]
    net = ["all", "", "", _signed(served["net_cost_by_node"]), "", "", _signed(served["net_cost_by_job"])]
    print_below(
        f"Checkpoints of {served['dump_minutes']:g} min: by a node's MTTF, and by the job's", columns, [*rows, net]
    )


def _signed(value: float) -> str:
    return f"{round(value, 2) + 0.0:+.2f}"  # no minus before zero


def _text(value: float | None, unit: str = "", digits: int = 2) -> str:
    return "not known" if value is None and unit else "-" if value is None else f"{value:,.{digits}f}{unit}"


def _capacity(plan: dict[str, Any]) -> tuple[list[str], Rows]:
    columns = ["class"]
    for level in plan["capacity"]:
        columns += [f"I,IV {level['blocking']:g}", "II,III", "3.14"]
    keys = ("types_1_4", "types_2_3_by_size", "types_2_3_equation_3_14")
    rows = [
        [one["class"], *(f"{level[key][at]:,.0f}" for level in plan["capacity"] for key in keys)]
        for at, one in enumerate(plan["classes"])
    ]
    return columns, rows


def _blocking(plan: dict[str, Any]) -> tuple[list[str], Rows]:
    columns = ["class"]
    for level in plan["blocking"][0]["levels"]:
        columns += [f"for {level['blocking']:g}", "servers", "linear", "exact"]
    rows = []
    for one in plan["blocking"]:
        row = [one["class"]]
        for level in one["levels"]:
            row += cells(level, "capacity:,.0f", "servers", "linear:.4f", "exact:.4f")
        rows.append([*row, *cells(one, "shared:.4f")])
    return [*columns, "share"], rows


def _queueing(plan: dict[str, Any]) -> Rows:
    rows = []
    for one in plan["queueing"]:
        exact, thesis = one["exact"], one["printed"]
        told = ["unstable", "-", "-"] if exact is None else cells(exact, "chance:.4f", "length:.4f", "wait:.4f")
        if one["erlang"] == 0:
            told = ["no jobs", "-", "-"]
        printed = ["-"] * 3
        if thesis is not None:
            printed = [*cells(thesis, "chance:.4f", "length:.4f"), f"{3600 * thesis['wait']:.2f}"]
        rows.append([*cells(one, "class", "blocking:g", "servers"), *told, *printed])
    return rows

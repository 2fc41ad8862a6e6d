"""``pipistrelle workload fill``: fill shared GPU nodes with pods (jobs)."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipistrelle.cli.options.fields import SvgFile
from pipistrelle.cli.options.files import json_option
from pipistrelle.cli.options.sections import Command
from pipistrelle.cli.terminal.console import print_json, print_table, show
from pipistrelle.cli.terminal.guard import FILE, refuse_overwriting
from pipistrelle.protocol.base.log import logger

if TYPE_CHECKING:
    _PercentType = click.ParamType[Any]
else:
    _PercentType = click.ParamType  # before click 8.2 it takes no type


class _Percent(_PercentType):
    """A percentage above zero, such as 130%, or the number 1.3."""

    name = "percentage"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse the percentage; raise a usage error if it is not valid."""
        from pipistrelle.runs.filling.experiment import parse_until  # loads numpy

        try:
            return parse_until(str(value))
        except ValueError:
            self.fail(f"'{value}' is not a percentage above 0% and up to 1000%, such as 130%.", param, ctx)


@click.command("fill", cls=Command)
@click.option(
    "--platform", type=FILE, required=True, help="Nodes: CSV with columns sn (name), cpu_milli, memory_mib and gpu."
)
@click.option("--workload", type=FILE, required=True, help="Pods: CSV with columns cpu_milli, memory_mib and num_gpu.")
@click.option(
    "--placement",
    "placements",
    metavar="NAME",
    multiple=True,
    default=("fgd",),
    show_default=True,
    help="Placement rule that chooses nodes and GPUs; repeat to compare several.",
)
@click.option(
    "--until",
    type=_Percent(),
    default="130%",
    show_default=True,
    help="Stop when the pods have requested this percentage of all GPUs.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**31),
    default=42,
    show_default=True,
    help="Random seed for the order of nodes and pods.",
)
@click.option(
    "--seeds",
    type=click.IntRange(1, 10_000),
    default=1,
    show_default=True,
    help="Number of repetitions: with random seed --seed, --seed + 1, ...",
)
@json_option
@click.option("--picture", type=SvgFile(), help="Also draw the results as an .svg picture.")
def fill_command(
    platform: Path,
    workload: Path,
    placements: tuple[str, ...],
    until: float,
    seed: int,
    seeds: int,
    as_json: bool,
    picture: Path | None,
) -> None:
    """Fill shared nodes with pods that never end.

    Pods (jobs) arrive in random order. Each pod is placed at once, or dropped if no node has room for it.
    """
    from pipistrelle.runs.filling.experiment import fill
    from pipistrelle.runs.filling.openb import read_nodes, read_pods
    from pipistrelle.runs.filling.summary import fills_svg, summarise_fills
    from pipistrelle.schedulers.sharing.placements import check_shared
    from pipistrelle.traces.files import write_trace

    for name in placements:
        check_shared(name)
    refuse_overwriting([str(platform), str(workload)], [picture])
    nodes = read_nodes(str(platform))
    pods = read_pods(str(workload), nodes)
    for warning in pods.warnings:
        logger().warning(f"{workload}: {warning}")
    found = [
        summarise_fills(
            name, seed, [fill(nodes, pods, name, until=until, seed=seed + number) for number in range(seeds)]
        )
        for name in dict.fromkeys(placements)
    ]
    if picture is not None:
        write_trace(picture, [fills_svg(found).encode()])
    if as_json:
        print_json(found[0] if len(found) == 1 else {"fills": found})
        return
    for one in found:
        _print(one)
    if picture is not None:
        show(f"picture in {picture}")


def _print(one: dict[str, Any]) -> None:
    """Print the results of one placement."""
    rows = []
    for place, (point, allocated) in enumerate(one["allocated"]):
        cells = [f"{point}", f"{allocated:.2f}", f"{one['fragmented'][place][1]:.2f}"]
        if "intervals" in one:
            ends = (one["intervals"][name][place] for name in ("allocated", "fragmented"))
            cells += [f"{low:.2f} to {high:.2f}" for _, low, high in ends]
        rows.append(cells)
    columns = ["requested", "allocated", "fragmented"]
    if "intervals" in one:
        columns += ["allocated, 95 %", "fragmented, 95 %"]
    seeds = "1 fill" if one["seeds"] == 1 else f"mean of {one['seeds']} fills"
    print_table(f"{one['placement']}: % of the cluster's GPUs, {seeds}", columns, rows, ())
    show(f"{one['placed']:,.0f} pods placed, {one['dropped']:,.0f} dropped")

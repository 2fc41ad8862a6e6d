"""Draw the jobs, ages and failures of a machine as a picture.

It has one cell per node.
"""

from math import ceil, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.models.workloads.pictures import drawn_as
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.reports.placement.run import Floats, PlacedRun

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_YEAR: Final = 365.25 * 86_400
#: number of colours for jobs before colours repeat
_COLOURS: Final = 20


def busiest_time(run: PlacedRun) -> float:
    """Return the first time (s) with the most running jobs; 0 without jobs."""
    times = np.sort(run.start)
    if not times.size:
        return 0.0
    running = np.searchsorted(times, times, side="right") - np.searchsorted(np.sort(run.end), times, side="right")
    return float(times[np.argmax(running)])


def picture(run: PlacedRun, time: float, suffix: str) -> bytes:
    """Draw a machine as a picture with three panels.

    They show the jobs at a time, the ages of nodes, and failures. In a torus or mesh, each plane of the first two
    dimensions is a tile. The tiles stand side by side, and so do the nodes of one router. Other networks are drawn in
    rows of nodes. Grey means idle or unknown. If no ages are known, the classes of nodes are shown instead. Equal runs
    give equal bytes with one version of matplotlib.

    Args:
        time: seconds after time 0.
        suffix: ``.svg`` or ``.png``.

    Raises:
        PipistrelleError: if matplotlib is not installed.
    """
    panels = [_jobs(run, time), _ages(run.machine), _failures(run)]

    def draw(figure: "Figure") -> None:
        from matplotlib import colormaps

        figure.suptitle(f"{run.machine.topology.kind} of {len(run.machine.nodes):,} nodes", parse_math=False)
        for number, (title, values, settings) in enumerate(panels, 1):
            axes = figure.add_subplot(len(panels), 1, number)
            colours = colormaps[settings.pop("cmap")].with_extremes(bad="0.85")
            image = axes.imshow(
                cells(run.machine, values), cmap=colours, interpolation="none", aspect="auto", **settings
            )
            axes.set_title(title, parse_math=False)
            axes.set_axis_off()
            if number > 1:
                figure.colorbar(image, ax=axes)

    return drawn_as(suffix, draw, 9, 12)


def cells(machine: Machine, values: Floats) -> Floats:
    """Arrange values as the cells of the picture, shape (rows, columns).

    ``values`` has one value per node. Cells without a node are NaN.
    """
    topology = machine.topology
    if len(topology.shape) == 1:
        width = ceil(sqrt(len(values) * 2))
        cells = np.full(ceil(len(values) / width) * width, np.nan)
        cells[: len(values)] = values
        return cells.reshape(-1, width)
    each, (width, height) = topology.nodes_per_router, topology.shape[:2]
    others = topology.shape[2:]
    tiles = int(np.prod(others, dtype=np.intp))
    across = ceil(sqrt(tiles * 1.5 * height / (width * each))) if tiles > 1 else 1
    tile = np.zeros(len(values), dtype=np.intp)
    for dimension, size in enumerate(others, 2):
        tile = tile * size + topology.place[:, dimension]
    step_x, step_y = width * each + 1, height + 1
    table = np.full((ceil(tiles / across) * step_y - 1, across * step_x - 1), np.nan)
    x = (tile % across) * step_x + topology.place[:, 0] * each + topology.places % each
    table[(tile // across) * step_y + topology.place[:, 1], x] = values
    return table


def _jobs(run: PlacedRun, time: float) -> tuple[str, Floats, dict[str, Any]]:
    values = np.full(len(run.machine.nodes), np.nan)
    running = np.flatnonzero((run.start <= time) & (run.end > time))
    for colour, job in enumerate(running[np.argsort(-run.sizes[running], kind="stable")].tolist()):
        values[run.nodes[job]] = colour % _COLOURS
    title = f"{len(running):,} jobs at {time:g} s"
    return title, values, {"cmap": "tab20", "vmin": 0, "vmax": _COLOURS - 1}


def _ages(machine: Machine) -> tuple[str, Floats, dict[str, Any]]:
    nodes = machine.nodes
    if not np.isnan(nodes.age).all():
        return "age, years", nodes.age / _YEAR, {"cmap": "viridis"}
    if not np.isnan(nodes.mttf).all():
        return "mean time to failure, hours", nodes.mttf / 3600.0, {"cmap": "viridis"}
    classes: NDArray[np.float64] = np.where(nodes.node_class > 0, nodes.node_class, np.nan)
    named = ", ".join(f"{number} {name}" for number, name in enumerate(nodes.classes) if number)
    return f"class: {named or 'none is known'}", classes, {"cmap": "viridis"}


def _failures(run: PlacedRun) -> tuple[str, Floats, dict[str, Any]]:
    counts = np.bincount(run.failed, minlength=len(run.machine.nodes)).astype(np.float64)
    return f"failures: {len(run.failed):,}", counts, {"cmap": "Reds", "vmin": 0, "vmax": max(counts.max(initial=0), 1)}


def is_picture(path: Path) -> bool:
    """Return whether a file name has the suffix of a supported picture format."""
    return path.suffix in (".svg", ".png")

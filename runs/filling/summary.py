"""Means and pictures of fills over several seeds.

A fill is an experiment that fills a cluster with pods.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pipistrelle.models.samples.estimates import mean_interval
from pipistrelle.models.workloads.pictures import drawn
from pipistrelle.runs.filling.experiment import FIGURES, Filled

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def summarise_fills(placement: str, seed: int, fills: Sequence[Filled]) -> dict[str, Any]:
    """Return the means of experiments over seeds as JSON values.

    With several seeds, include 95 % intervals of the means.
    """
    found: dict[str, Any] = {"placement": placement, "seed": seed, "seeds": len(fills)}
    intervals: dict[str, list[list[float | None]]] = {}
    for name in FIGURES:
        rows = list(zip(*(getattr(one, name) for one in fills), strict=True))
        means = [mean_interval([value for _, value in row]) for row in rows]
        points = [row[0][0] for row in rows]
        found[name] = [[point, mean.value] for point, mean in zip(points, means, strict=True)]
        intervals[name] = [[point, mean.low, mean.high] for point, mean in zip(points, means, strict=True)]
    if len(fills) > 1:
        found["intervals"] = intervals
    found["placed"] = sum(one.placed for one in fills) / len(fills)
    found["dropped"] = sum(one.dropped for one in fills) / len(fills)
    return found


def fills_svg(fills: Sequence[Mapping[str, Any]]) -> str:
    """Return a picture of allocated and fragmented GPUs, as SVG text.

    It has one line per placement.
    """

    def draw(figure: "Figure") -> None:
        for place, name in enumerate(FIGURES, 1):
            axes = figure.add_subplot(1, 2, place)
            for one in fills:
                axes.plot(
                    [point for point, _ in one[name]],
                    [value for _, value in one[name]],
                    marker="o",
                    label=one["placement"],
                )
            axes.set_xlabel("GPUs requested, % of the cluster")
            axes.set_ylabel(f"GPUs {name}, % of the cluster")
            axes.legend()

    return drawn(draw, 9, 3.6)

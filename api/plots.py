"""Plots of one run, drawn with matplotlib."""

from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from pipistrelle.api.derived import use_of
from pipistrelle.api.tables import Table, imported
from pipistrelle.protocol.base.errors import PipistrelleError, quoted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DAY: Final = 86_400.0
_HOUR: Final = 3600.0


class Drawn(Protocol):
    """The properties of a `Run` that plots need."""

    @property
    def folder(self) -> Path:
        """The folder of the outputs."""

    @property
    def scheduler(self) -> str:
        """The scheduler's name."""

    @property
    def units(self) -> int:
        """The number of units of the machine."""

    @property
    def clock(self) -> tuple[float | None, str | None]:
        """The Unix time (s) of simulated time 0, and the time zone; None if unknown."""

    @property
    def machine(self) -> Table:
        """The number of busy units over time."""

    @property
    def jobs(self) -> Table:
        """The jobs that ended."""

    @property
    def takes(self) -> Table:
        """The resources that each started job holds on shared nodes."""

    @property
    def config(self) -> dict[str, Any]:
        """The configuration of the run, with the machine."""

    @property
    def queue(self) -> Table:
        """The number of waiting jobs over time."""


class Plots:
    """Plots of a run's results with matplotlib; each method returns the axes.

    Each method takes axes to draw on, so several runs fit in one figure; without axes it makes a figure. Further
    keywords, such as ``label`` and ``color``, go to matplotlib.
    """

    def __init__(self, run: Drawn) -> None:
        self._run = run

    def utilisation(
        self, ax: "Axes | None" = None, *, resource: str | None = None, days: float = 1.0, **style: Any
    ) -> "Axes":
        """Draw the share of busy units over time, averaged over periods.

        The share is in percent of all units.

        Args:
            resource: a resource of shared nodes, such as ``memory`` or ``gpu``: draw the share of it that jobs hold.
            days: length of a period, in days; 0 draws every change.

        Raises:
            PipistrelleError: the nodes do not have the resource, or matplotlib or pyarrow is not installed.
        """
        machine, axes = self._run.machine, axes_of(ax)
        times, busy = machine["time"].astype(float), machine["nb_computing"].astype(float)
        whole = float(max(self._run.units, 1))
        if resource is not None:
            whole = self._total(resource)
            until = float(times[-1]) if len(times) else 0.0
            times, busy = use_of(self._run.takes, self._run.jobs, resource, until)
        axes.set_ylabel("busy units, %" if resource is None else f"{resource} held by jobs, %")
        if len(times):
            share = 100.0 * busy / whole
            bounds = times
            if days > 0:
                bounds, share = _means(times, share, days * _DAY)
            axes.stairs(share[: len(bounds) - 1], self._on_axis(axes, bounds), **{"baseline": None, **style})
        axes.set_ylim(0, 105)
        return axes

    def queue(self, ax: "Axes | None" = None, *, units: bool = False, **style: Any) -> "Axes":
        """Draw the number of waiting jobs over time.

        With ``units``, draw the number of units that these jobs request.

        Raises:
            PipistrelleError: `Run.queue` is not known, or matplotlib or pyarrow is not installed.
        """
        queue, axes = self._run.queue, axes_of(ax)
        times = queue["time"].astype(float)
        waiting = queue["waiting_units" if units else "waiting_jobs"].astype(float)
        axes.step(self._on_axis(axes, times), waiting, where="post", **{"linewidth": 1.0, **style})
        axes.set_ylabel("units that waiting jobs ask for" if units else "waiting jobs")
        axes.set_ylim(bottom=0)
        return axes

    def waits(self, ax: "Axes | None" = None, **style: Any) -> "Axes":
        """Draw the cumulative distribution of the jobs' waits, in hours.

        Raises:
            PipistrelleError: matplotlib is not installed.
        """
        return self._distribution(ax, "wait", 1 / _HOUR, "wait, hours", style)

    def slowdowns(self, ax: "Axes | None" = None, **style: Any) -> "Axes":
        """Draw the cumulative distribution of the jobs' bounded slowdowns (tau = 10 s).

        Raises:
            PipistrelleError: matplotlib is not installed.
        """
        axes = self._distribution(ax, "bounded_slowdown", 1.0, "bounded slowdown (10 s)", style)
        axes.set_xscale("log")
        return axes

    def _total(self, resource: str) -> float:
        """Return the amount of a resource of all nodes together."""
        from pipistrelle.reports.page.takes import resources_of  # slow to import

        found = resources_of(self._run.config)
        if resource not in found:
            raise PipistrelleError(
                f"the run's nodes do not have the resource {quoted(resource)}",
                expected=f"one of {', '.join(found)}" if found else "no resource: the nodes have units only",
            )
        return float(found[resource].sum())

    def _distribution(self, ax: "Axes | None", metric: str, scale: float, name: str, style: dict[str, Any]) -> "Axes":
        from pipistrelle.runs.folders.run_jobs import read_run_jobs  # slow to import

        values = np.sort(getattr(read_run_jobs(self._run.folder), metric)) * scale
        axes = axes_of(ax)
        shares = np.arange(1, len(values) + 1) / max(len(values), 1)
        axes.step(values, shares, where="post", **{"label": self._run.scheduler, **style})
        axes.set_xlabel(name)
        axes.set_ylabel("share of jobs")
        axes.set_ylim(0, 1.02)
        axes.legend()
        return axes

    def _on_axis(self, axes: "Axes", times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Convert times (s) to positions on the x-axis, and label the axis.

        Positions are dates if the date of time 0 is known, else days.
        """
        epoch, name = self._run.clock
        if epoch is None:
            axes.set_xlabel("time, days")
            return times / _DAY
        try:
            zone = UTC if name is None else ZoneInfo(name)
        except (KeyError, ValueError, OSError):
            zone = UTC
        dates = imported("matplotlib.dates", "a plot")
        axes.xaxis_date(zone)
        locator = dates.AutoDateLocator(tz=zone)
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator, tz=zone))
        axes.set_xlabel(f"date ({zone})")
        return (epoch + times) / _DAY


def axes_of(ax: "Axes | None") -> "Axes":
    """Return the given axes, or those of a new figure.

    Raise MissingPackage if matplotlib is not installed.
    """
    if ax is not None:
        return ax
    pyplot = imported("matplotlib.pyplot", "a plot")
    found: Axes = pyplot.subplots(figsize=(8, 3.5), layout="constrained")[1]
    return found


def _means(
    times: NDArray[np.float64], values: NDArray[np.float64], period: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Average a step function over periods.

    Args:
        times, values: the times (s) of the steps and the value from each of them on.
        period: length of a period (s); the last one may be shorter.

    Returns:
        The bounds of the periods (s), and the mean in each period, followed by NaN.
    """
    first, last = times[0], max(times[-1], times[0] + 1.0)
    bounds = np.append(np.arange(first, last, period), last)
    areas = np.append(0.0, np.cumsum(values[:-1] * np.diff(times)))
    at = np.interp(bounds, times, areas)  # the integral of a step function is linear between its steps
    return bounds, np.append(np.diff(at) / np.diff(bounds), np.nan)

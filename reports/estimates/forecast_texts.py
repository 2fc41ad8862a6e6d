"""A forecast as cells of a table, as CSV and as JSON."""

from collections.abc import Callable, Mapping
from datetime import datetime, tzinfo
from typing import Any, Final

from msgspec import to_builtins

from pipistrelle.protocol.base.lengths import two_units_text
from pipistrelle.runs.forecast.forecast import Forecast, JobForecast
from pipistrelle.server.outputs.csv_file import csv_text

#: what stands for the start of a job that does not start
NEVER: Final = "never"
_TIMES: Final = ("submit", "start", "last", "early", "median", "late")
_COLUMNS: Final = (
    *("id", "tried", "tasks", "name", "user", "account", "partition", "qos", "node_count", "limit", "priority"),
    *("submit", "reason", "start", "last", "nodes", "early", "median", "late", "started", "shift"),
)


class ForecastTexts:
    """One forecast of job starts as texts: table, CSV and JSON.

    Args:
        zone: time zone of the dates.
    """

    def __init__(self, forecast: Forecast, zone: tzinfo) -> None:
        self.forecast = forecast
        self._zone = zone

    def date(self, time: float | None) -> str:
        """Return a time (s since 1970) as ``2026-01-05T08:00:00``; "never" for None."""
        return NEVER if time is None else datetime.fromtimestamp(time, self._zone).strftime("%Y-%m-%dT%H:%M:%S")

    def columns(self) -> Mapping[str, Callable[[JobForecast], str]]:
        """Return {heading of a column: function}.

        The function returns the text of a job in this column.
        """
        found: dict[str, Callable[[JobForecast], str]] = {
            "job": lambda one: one.id,
            "user": lambda one: one.user,
            "account": lambda one: one.account,
            "partition": lambda one: one.partition,
            "nodes": lambda one: f"{one.node_count:,}",
            "limit": lambda one: two_units_text(one.limit),
            "priority": lambda one: str(one.priority),
            "reason": lambda one: one.reason,
        }
        if self.forecast.replicas:
            found |= {
                "10 %": lambda one: self.date(one.early),
                "50 %": lambda one: self.date(one.median),
                "90 %": lambda one: self.date(one.late),
            }
        found["by limits"] = lambda one: self.date(one.start)
        if any(one.tried for one in self.forecast.jobs):
            found["later by"] = lambda one: "" if not one.shift else _signed(one.shift)
        found["expected nodes"] = lambda one: one.nodes
        return found

    def summary(self) -> list[str]:
        """Return lines of text that describe the state of the cluster.

        The forecast starts from this state.
        """
        found = self.forecast
        waiting = sum(one.tasks for one in found.jobs)
        lines = [
            f"{waiting:,} pending and {found.running:,} running jobs at {self.date(found.now)},"
            f" {found.out:,} of {found.nodes:,} nodes out of service"
        ]
        if found.replicas:
            lines.append(
                f"10, 50 and 90 % of the starts in {found.replicas:,} replicas with run times drawn from"
                f" {found.history:,} past jobs (seed {found.seed})"
            )
        else:
            lines.append("Without past jobs, every job is assumed to use its whole time limit (one replica).")
        return lines

    def csv(self) -> str:
        """Return the forecast as CSV, one line per job."""
        lines = [",".join(_COLUMNS)]
        for one in self.forecast.jobs:
            lines.append(",".join(csv_text(self._cell(one, name)) for name in _COLUMNS))
        return "".join(f"{line}\n" for line in lines)

    def _cell(self, one: JobForecast, name: str) -> str:
        value = getattr(one, name)
        if value is None:
            return ""
        if name in _TIMES:
            return self.date(value)
        if isinstance(value, bool):
            return str(int(value))
        return f"{value:.10g}" if isinstance(value, float) else str(value)

    def json(self) -> dict[str, Any]:
        """Return the forecast as values that JSON can hold.

        Times are dates with an offset.
        """
        made: dict[str, Any] = to_builtins(self.forecast)
        for row in (made, *made["jobs"]):
            for name in (*_TIMES, "now", "until"):
                if isinstance(row.get(name), float):
                    row[name] = datetime.fromtimestamp(row[name], self._zone).isoformat()
        return made


def _signed(seconds: float) -> str:
    return f"{'+' if seconds > 0 else '-'}{two_units_text(abs(seconds))}"

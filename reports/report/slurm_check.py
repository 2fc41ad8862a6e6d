"""Texts and tables of a comparison of the scheduler ``slurm``.

It is compared with a recording of slurmctld.
"""

from typing import Any, Final

from pipistrelle.platforms.naming.hostlists import compressed
from pipistrelle.runs.recordings.check import SlurmCheck
from pipistrelle.runs.recordings.names import JobStart
from pipistrelle.server.outputs.csv_file import csv_text

_CSV: Final = "job,time,nodes,time_delays_recorded,nodes_delays_recorded,time_delays_modelled,nodes_delays_modelled"


class SlurmCheckTexts:
    """A comparison as tables, CSV and JSON."""

    agreement_columns: Final = ("compared", "equal", "of", "share")
    wait_columns: Final = ("jobs of", "recorded", "delays recorded", "error", "delays modelled", "error ")

    def __init__(self, check: SlurmCheck) -> None:
        self.check = check

    @property
    def title(self) -> str:
        """The title of the tables."""
        return f"The scheduler slurm beside slurmctld in {self.check.name}"

    def agreements(self) -> list[tuple[str, ...]]:
        """Return the rows of a table of what was compared and how much of it is equal."""
        return [
            (one.what, f"{one.equal:,}", f"{one.compared:,}", _percent(one.equal / max(1, one.compared)))
            for one in self.check.agreements
        ]

    def waits(self) -> list[tuple[str, ...]]:
        """Return the rows of a table of mean waits, by partition, account and QOS."""
        rows = []
        for group, wait in sorted(self.check.waits.items()):
            cells = [" ".join(group), f"{wait:,.1f}"]
            for run in self.check.runs:
                own = run.waits.get(group)
                cells.append("-" if own is None else f"{own:,.1f}")
                cells.append(_percent(own / wait - 1, sign=True) if wait and own is not None else "-")
            rows.append(tuple(cells))
        return rows

    def differences(self, most: int) -> list[str]:
        """Return a line for each differing pass, and for each run's first differing start.

        There are at most ``most`` lines for passes. The line of a start gives the cause of the difference.
        """
        passes = self.check.differences
        lines = [f"pass at {one.time:,.2f} s: {one.text} ({one.where})" for one in passes[:most]]
        if len(passes) > most:
            lines.append(f"{len(passes) - most:,} more passes or priorities differ")
        elif not passes:
            lines.append("passes: none")
        for run in self.check.runs:
            text = f"{run.difference}; {run.cause}" if run.difference else "none"
            lines.append(f"run, delays {run.delays}: {text}")
        return lines

    def csv(self) -> str:
        """Return the comparison as CSV, one line for each recorded start.

        A line also has the simulated starts of the same job.
        """
        lines = [_CSV]
        for number, start in enumerate(self.check.starts):
            cells = _cells(start)
            for run in self.check.runs:
                cells += _cells(run.simulated[number])[1:]
            lines.append(",".join(cells))
        return "".join(f"{line}\n" for line in lines)

    def json(self) -> dict[str, Any]:
        """Return the whole comparison as JSON values."""
        check = self.check
        return {
            "recording": check.name,
            "compared": [{"what": one.what, "equal": one.equal, "of": one.compared} for one in check.agreements],
            "waits": [
                {
                    "what": group[0],
                    "name": group[1],
                    "recorded": wait,
                    **{f"delays_{run.delays}": run.waits.get(group) for run in check.runs},
                }
                for group, wait in sorted(check.waits.items())
            ],
            "runs": [
                {
                    "delays": run.delays,
                    "equal": run.same,
                    "equal_second": run.same_second,
                    "starts": run.starts,
                    "largest_error_of_mean_wait": run.largest_error,
                    "first_difference": run.difference or None,
                    "cause": run.cause or None,
                }
                for run in check.runs
            ],
            "differences": [{"time": one.time, "what": one.text, "where": one.where} for one in check.differences],
        }


def _cells(start: JobStart | None) -> list[str]:
    if start is None:
        return ["", "", ""]
    return [start.job, str(int(start.time)), csv_text(compressed(start.nodes))]


def _percent(share: float, *, sign: bool = False) -> str:
    return f"{100 * share:+.2f} %" if sign else f"{100 * share:.1f} %"

"""Batsim's output files; docs/how-to/batsim.md lists the differences.

The formats follow files of Batsim 4.2 and the behaviour of its export code.
"""

from array import array
from collections.abc import Sequence
from functools import partial
from math import fsum
from typing import Any, Final, Protocol

from pipistrelle.protocol.base.state import Kept
from pipistrelle.protocol.fields import EndReason, package_version
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.server.batsim.machine_book import STATES, UNAVAILABLE, MachineBook
from pipistrelle.server.engine.jobs import NEVER_RAN, Job
from pipistrelle.server.engine.observers import SWITCHING_OFF, SWITCHING_ON, Observer
from pipistrelle.server.outputs.csv_file import CsvFile, Written
from pipistrelle.server.outputs.folder import remove_snapshots
from pipistrelle.server.outputs.metrics import Summary
from pipistrelle.server.outputs.once import SCHEDULE_COLUMNS, remove_outputs, write_output
from pipistrelle.server.outputs.recorder import JOBS_COLUMNS, MACHINE_COLUMNS, job_lines

PSTATE_COLUMNS: Final = "time,machine_id,new_pstate"
ENERGY_COLUMNS: Final = "time,energy,event_type,wattmin,epower"
#: execution time (s) that Batsim writes for a job with an execution time of 0
_SHORTEST: Final = 1e-5
_OPTION: Final = "--export"
#: names of all files that may be written, without prefix
OUTPUT_NAMES: Final = (
    "_jobs.csv",
    "_schedule.csv",
    "_machine_states.csv",
    "_consumed_energy.csv",
    "_pstate_changes.csv",
)


def output_paths(prefix: str) -> list[str]:
    """Return the paths of all files that a run with this prefix may write."""
    return [prefix + name for name in OUTPUT_NAMES]


class Meter(Protocol):
    """Interface of the hosts' energy meter; `Hosts` implements it."""

    def energy(self, now: float) -> float:
        """Return the energy (J) of all hosts since time 0."""

    def lowest_power(self) -> float:
        """Return the power (W) of all hosts in their present pstates at almost no load."""

    def pstates(self) -> Sequence[int]:
        """Return the present pstate of each host."""


class BatsimOutputs(Kept):
    """The writer of Batsim's output files.

    The files are ``PREFIX_jobs.csv``, ``PREFIX_schedule.csv`` and optional ones.
    """

    _kept = ("_trace", "_energy")

    def __init__(self, prefix: str, *, machine_states: bool = True) -> None:
        self._prefix = prefix
        self._trace = _Trace(prefix, machine_states=machine_states)
        self._energy: _EnergyTrace | None = None

    def observers(self) -> Sequence[Observer]:
        """Return the writer of jobs and machine states.

        The engine may delay its calls to this writer.
        """
        return [self._trace]

    def metered(self, meter: Meter) -> Observer:
        """Return the writer of energy and pstate changes.

        The engine must not delay its calls to this writer.
        """
        self._energy = _EnergyTrace(self._prefix, meter)
        return self._energy

    def before(self, config: dict[str, Any]) -> None:
        """Remove an earlier run's outputs and snapshots."""
        remove_outputs(output_paths(self._prefix))
        remove_snapshots(f"{self._prefix}_")

    def after(self, summary: Summary) -> None:
        """Write ``PREFIX_schedule.csv``; means and sums follow Batsim's rules."""
        joules = 0.0 if self._energy is None else self._energy.between_jobs
        figures = self._trace.figures() | {"consumed_joules": _six(joules)}
        columns = SCHEDULE_COLUMNS.split(",")
        line = ",".join(figures.get(column, "") for column in columns)
        write_output(f"{self._prefix}_schedule.csv", f"{SCHEDULE_COLUMNS}\n{line}\n", _OPTION)

    def flush(self) -> None:
        """Write all rows to the files."""
        self._trace.flush()
        if self._energy is not None:
            self._energy.flush()


class _Trace(Written, Observer):
    _kept = (
        *("_jobs", "_changes", "_book", "_units", "_ended", "_waits", "_turnarounds", "_slowdowns", "_makespan"),
        *("_switches", "_grouped_switches"),
    )

    def __init__(self, prefix: str, *, machine_states: bool) -> None:
        self._jobs = CsvFile(f"{prefix}_jobs.csv", JOBS_COLUMNS, _OPTION, partial(job_lines, shortest=_SHORTEST))
        self._changes: CsvFile | None = None
        if machine_states:
            self._changes = CsvFile(f"{prefix}_machine_states.csv", MACHINE_COLUMNS, _OPTION)
        self._book = MachineBook(0)
        self._units = 0
        self._ended: dict[str, int] = {}
        self._waits = array("d")
        self._turnarounds = array("d")
        self._slowdowns = array("d")
        self._makespan = 0.0
        self._switches = 0
        self._grouped_switches = 0

    def begins(self, now: float, units: int) -> None:
        self._units = units
        self._book = MachineBook(units)
        self.open()

    def started(self, now: float, job: Job) -> None:
        self._book.job_begins(now, job.alloc)
        self._write_states(now)

    def ended(self, now: float, job: Job) -> None:
        self._jobs.write(job)
        self._ended[job.state] = self._ended.get(job.state, 0) + 1
        if job.state in NEVER_RAN:
            return
        wait, execution = job.start - job.submit, job.end - job.start or _SHORTEST
        self._waits.append(wait)
        self._turnarounds.append(wait + execution)
        self._slowdowns.append((wait + execution) / execution)
        self._makespan = max(self._makespan, job.start + execution)
        if job.alloc:
            self._book.job_ends(now, job.alloc)
            self._write_states(now)

    def switched(self, now: float, units: NodeSet, pstate: int) -> None:
        """Count a request to switch units on or off, and write the state of the machine."""
        if pstate in (SWITCHING_ON, SWITCHING_OFF):
            self._grouped_switches += 1
            self._switches += len(units)
            self._write_states(now)

    def departed(self, now: float, units: NodeSet, on: bool) -> None:
        self._book.switch_begins(now, units, on=on)

    def arrived(self, now: float, units: NodeSet, complete: bool) -> None:
        """Record that units have switched.

        As in Batsim, write the machine's state if a whole request is complete.
        """
        self._book.switch_ends(now, units)
        if complete:
            self._write_states(now)

    def availability(self, now: float, units: NodeSet, available: bool) -> None:
        """Record that units become available or unavailable.

        As in Batsim, write nothing to the output files.
        """
        if available:
            self._book.come_back(now, units)
        else:
            self._book.leave(now, units)

    def ends(self, now: float, reason: EndReason, message: str) -> None:
        self.close()

    def figures(self) -> dict[str, str]:
        """Return {column: value} of the schedule file; means include rejected jobs as 0."""
        jobs = sum(self._ended.values())
        success = self._ended.get("COMPLETED_SUCCESSFULLY", 0)
        rejected = self._ended.get("REJECTED", 0)
        values = {
            "batsim_version": f"pipistrelle {package_version()}",
            "makespan": _six(self._makespan),
            "nb_computing_machines": str(self._units),
            "nb_grouped_switches": str(self._grouped_switches),
            "nb_jobs": str(jobs),
            "nb_jobs_finished": str(jobs - rejected),
            "nb_jobs_killed": str(jobs - rejected - success),
            "nb_jobs_rejected": str(rejected),
            "nb_jobs_success": str(success),
            "nb_machine_switches": str(self._switches),
            "success_rate": _six(success / (jobs or 1)),
        }
        columns = ("waiting_time", self._waits), ("turnaround_time", self._turnarounds), ("slowdown", self._slowdowns)
        for name, each in columns:
            values[f"max_{name}"] = _six(max(each, default=0.0))
            values[f"mean_{name}"] = _six(fsum(each) / (jobs or 1))
        for state, name in enumerate(STATES):
            values[f"time_{name}"] = _six(self._book.unit_seconds(state))
        return values

    def _write_states(self, now: float) -> None:
        if self._changes is not None:
            # Batsim has no column for unavailable units.
            counts = ",".join(map(str, self._book.counts[:UNAVAILABLE]))
            self._changes.write(f"{_brief(now)},{counts}\n")


class _EnergyTrace(Written, Observer):
    _kept = ("_energy", "_pstates", "_last", "_at_first_job", "_at_last_end")

    def __init__(self, prefix: str, meter: Meter) -> None:
        self._energy = CsvFile(f"{prefix}_consumed_energy.csv", ENERGY_COLUMNS, _OPTION)
        self._pstates = CsvFile(f"{prefix}_pstate_changes.csv", PSTATE_COLUMNS, _OPTION)
        self._meter = meter
        #: time of the last meter reading (s) and its value (J)
        self._last = (0.0, 0.0)
        self._at_first_job: float | None = None
        self._at_last_end: float | None = None

    @property
    def between_jobs(self) -> float:
        """Energy (J) from the first submission to the last end; 0 if no job ended."""
        if self._at_first_job is None or self._at_last_end is None:
            return 0.0
        return self._at_last_end - self._at_first_job

    def begins(self, now: float, units: int) -> None:
        self.open()
        machines: dict[int, list[int]] = {}
        for machine, pstate in enumerate(self._meter.pstates()):
            machines.setdefault(pstate, []).append(machine)
        for pstate in sorted(machines):
            self._write_pstate(now, NodeSet.of(machines[pstate]), pstate)

    def submitted(self, now: float, job: Job) -> None:
        if self._at_first_job is None:
            self._at_first_job = self._meter.energy(now)

    def started(self, now: float, job: Job) -> None:
        self._write_energy(now, "s")

    def ended(self, now: float, job: Job) -> None:
        if job.alloc:
            self._at_last_end = self._write_energy(now, "e")

    def switched(self, now: float, units: NodeSet, pstate: int) -> None:
        self._write_pstate(now, units, pstate)
        self._write_energy(now, "p")

    def ends(self, now: float, reason: EndReason, message: str) -> None:
        self.close()

    def _write_energy(self, now: float, event: str) -> float:
        joules, watts = self._meter.energy(now), self._meter.lowest_power()
        last_time, last_joules = self._last
        power = _six((joules - last_joules) / (now - last_time)) if now > last_time else "NA"
        self._energy.write(f"{now:.6f},{joules:.6f},{event},{watts:.6f},{power}\n")
        self._last = (now, joules)
        return joules

    def _write_pstate(self, now: float, units: NodeSet, pstate: int) -> None:
        self._pstates.write(f"{_brief(now)},{units},{pstate}\n")


def _six(value: float) -> str:
    return f"{value:.6f}"


def _brief(time: float) -> str:
    """Return a time with at most six decimals.

    Batsim itself writes six significant digits.
    """
    return f"{time:.6f}".rstrip("0").rstrip(".")

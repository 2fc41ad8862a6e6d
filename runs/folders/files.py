"""A run's output folder as `pipistrelle explain` reads it: jobs, starts, free units over time."""

import csv
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from math import isfinite
from pathlib import Path
from typing import Any, Final

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from pipistrelle.protocol.base.errors import PipistrelleError, did_you_mean, legible, printable
from pipistrelle.protocol.fields import PREEMPTED
from pipistrelle.server.engine.jobs import Labels
from pipistrelle.server.outputs.folder import COMMAND_FILE, CONFIG_FILE, OUTPUT_PREFIX, check_outputs

Floats = NDArray[np.float64]
#: ids among which the closest is looked for
_MOST_NAMES: Final = 5000
#: characters of a scheduler's reason that are shown
_SHOWN: Final = 300
#: characters of one cell: a frame of a scheduler has no more
_LONGEST_CELL: Final = 1 << 27


class ExplainError(PipistrelleError):
    """A run or a job that cannot be explained."""


class JobLine(Struct, array_like=True):
    """A job as the outputs tell of it; times in seconds, None where there is none.

    ``queued`` is the submit time that counts in the queue: of the first attempt, where a job that comes back has its
    old place. ``requested`` is the walltime, None without one. ``labels`` are names as with `Job.labels`, None where
    they are not known: the outputs alone do not tell them.
    """

    id: str
    size: int
    submit: float
    queued: float
    requested: float | None
    state: str
    start: float | None
    end: float | None
    metadata: str = ""
    labels: Labels | None = None


class MachineStates(Struct):
    """Units over time: from ``times[i]`` (s, ascending) on ``idle[i]`` are free and ``down[i]`` out of service."""

    times: Floats
    idle: Floats
    down: Floats


class RunFiles(Struct):
    """What a run's folder tells, as far as it was written."""

    folder: Path
    config: dict[str, Any]
    #: None where the run did not come to its end, as when it was killed
    summary: dict[str, Any] | None
    jobs: dict[str, JobLine]
    #: {job id: when it was started (s)}, in the order of the starts
    starts: dict[str, float]
    #: {job id: when it was rejected (s)}
    rejections: dict[str, float]
    #: {job id: what the scheduler gave as its reason for starting or rejecting it}
    whys: dict[str, str]
    states: MachineStates
    #: the last instant of which the outputs tell (s)
    until: float
    #: {id of a job that was preempted: the scheduler's reason, "" if it gave none}
    preempted: dict[str, str] = field(default_factory=dict)

    def wait_ends(self, line: JobLine) -> float:
        """Return until when (s) a job waited: its start, or its rejection, else the end of the outputs."""
        if line.start is not None:
            return line.start
        if line.state == "CANCELLED" and line.end is not None:
            return line.end
        if line.state == "REJECTED":
            return max(self.rejections.get(line.id, line.submit), line.submit)
        return self.until

    def of_workload(self, key: str) -> Any:
        """Return what the first workload has under a key of the configuration: ``epoch``, ``timezone``."""
        first = next(iter(self.config["workloads"].values()), None)
        return first.get(key) if isinstance(first, dict) else None

    @property
    def left_out(self) -> str | None:
        """Which jobs of the workload the run left out before it began, in words; None if it had them all."""
        dropped = self.config.get("dropped")
        if not isinstance(dropped, dict) or not dropped:
            return None
        reasons = ", ".join(f"{printable(str(reason))}: {count}" for reason, count in dropped.items())
        return f"The run left out jobs before it began ({reasons})."

    @property
    def scheduler(self) -> str:
        """What the scheduler called itself."""
        return printable(str(self.config["scheduler"].get("name", "")))


def find_job(name: str, known: list[str], where: str, left_out: str | None = None) -> str:
    """Return which of the known ids is meant by ``name``: ``w0!17``, or ``17`` where that is clear.

    Raises
    ------
    ExplainError
        when it is none of them, or several; ``where`` is the run's folder, ``left_out`` which jobs it had not.
    """
    if name in known:
        return name
    found = [one for one in known if one.partition("!")[2] == name]
    if len(found) == 1:
        return found[0]
    if found:
        raise ExplainError(f"several jobs are called '{printable(name)}'", where=where, expected=" or ".join(found[:5]))
    whole = "!" in name
    near = [
        one if whole else one.partition("!")[2] for one in known if abs(len(one) - len(name)) <= (1 if whole else 4)
    ]
    raise ExplainError(
        f"there is no job '{printable(name)}' in the outputs of this run",
        where=where,
        hint=" ".join([*([left_out] if left_out else []), *([did_you_mean(name, near[:_MOST_NAMES])] if near else [])])
        or None,
    )


def read_run(folder: Path) -> RunFiles:
    """Read the outputs of `pipistrelle run`.

    Raises
    ------
    PipistrelleError
        when they are not there, are none, or not those of one run.
    """
    config = read_config(folder)
    summary = output_json(folder / f"{OUTPUT_PREFIX}summary.json")
    jobs = dict(_jobs(folder, _origins(folder, config)))
    starts: dict[str, float] = {}
    rejections: dict[str, float] = {}
    whys: dict[str, str] = {}
    asked: dict[str, str] = {}
    until = 0.0
    for row in output_rows(folder, "decisions.csv", "time", "decision", "job_id", "verdict", "why"):
        until = number_in(row["time"])
        if row["verdict"] == "carried_out" and row["decision"] in ("EXECUTE_JOB", "REJECT_JOB"):
            (starts if row["decision"] == "EXECUTE_JOB" else rejections)[row["job_id"]] = until
            if row["why"]:
                whys[row["job_id"]] = legible(row["why"], _SHOWN)
        elif row["verdict"] == "carried_out" and row["decision"] == "PREEMPT_JOB":
            asked[row["job_id"]] = legible(row["why"], _SHOWN)
    for name, start in starts.items():
        if name in jobs and jobs[name].start is not None:
            jobs[name].start = start  # to the last digit: that file has six decimals
    states = _states(folder)
    if len(states.times):
        until = max(until, float(states.times[-1]))
    preempted = _preempted(folder, asked) if asked else {}
    return RunFiles(folder, config, summary, jobs, starts, rejections, whys, states, until, preempted)


def check_folder(folder: Path) -> None:
    """Raise ExplainError if there is no such folder: neither a run's nor another."""
    if not folder.is_dir():
        what = "this is a file, not a folder" if folder.exists() else "there is no such folder"
        raise ExplainError(what, where=str(folder), expected="the outputs of 'pipistrelle run'")


def read_config(folder: Path) -> dict[str, Any]:
    """Return the configuration of the run whose outputs a folder has; PipistrelleError as `read_run` raises it."""
    check_folder(folder)
    config = output_json(folder / CONFIG_FILE)
    if config is None:
        raise ExplainError(
            f"there is no {CONFIG_FILE} in it", where=str(folder), expected="the outputs of 'pipistrelle run'"
        )
    check_outputs(folder)
    if not isinstance(config.get("scheduler"), dict) or not isinstance(config.get("workloads"), dict):
        raise ExplainError("this is no configuration of a run", where=str(folder / CONFIG_FILE))
    return config


def read_command(folder: Path) -> dict[str, Any] | None:
    """Return how a run was called, None where nothing tells; ExplainError if the file cannot be read."""
    return output_json(folder / COMMAND_FILE)


def output_json(path: Path) -> dict[str, Any] | None:
    """Return what a JSON file holds, None where there is none; ExplainError if it cannot be read."""
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ExplainError(f"cannot read the file ({error.strerror or error})", where=str(path)) from None
    except (ValueError, RecursionError):
        raise ExplainError("this is no JSON", where=str(path), hint="Was the run killed while it wrote?") from None
    if not isinstance(found, dict):
        raise ExplainError("this is no JSON object", where=str(path))
    return found


def output_rows(folder: Path, name: str, *columns: str, needed: bool = True) -> Iterator[dict[str, str]]:
    """Yield the lines of an output; a last one that was cut off is left out."""
    path = folder / f"{OUTPUT_PREFIX}{name}"
    csv.field_size_limit(_LONGEST_CELL)
    try:
        with path.open(encoding="utf-8", newline="") as file:
            lines = csv.reader((line for line in file if line.endswith("\n")), strict=True)
            header = next(lines, [])
            missing = [column for column in columns if column not in header]
            if missing:
                raise ExplainError(f"there is no column {missing[0]}", where=str(path), hint="Is it a run's output?")
            places = {column: header.index(column) for column in header}
            for line in lines:
                if len(line) != len(header):  # cut off
                    return
                yield {column: line[place] for column, place in places.items()}
    except FileNotFoundError:
        if needed:
            raise ExplainError(f"there is no {path.name} in it", where=str(folder)) from None
    except OSError as error:
        raise ExplainError(f"cannot read the file ({error.strerror or error})", where=str(path)) from None
    except UnicodeDecodeError:
        raise ExplainError("the file is not UTF-8 text", where=str(path)) from None
    except csv.Error:  # a quoted field that was cut off ends the file
        return


def number_in(text: str) -> float:
    """Return the finite number that a cell of an output holds; ExplainError if it is none."""
    with suppress(ValueError):
        number = float(text)
        if isfinite(number):
            return number
    raise ExplainError("a value in the outputs is no number", found=f"'{printable(text)[:60]}'")


def _origins(folder: Path, config: dict[str, Any]) -> dict[str, float]:
    """Return {attempt: the submit time (s) that counts} where jobs come back to their old places."""
    reliability = config.get("reliability")
    if isinstance(reliability, dict) and reliability.get("requeue") == "back":
        return {}
    columns = ("job_id", "workload_name", "attempt", "original_submission_time")
    return {
        f"{row['workload_name']}!{row['job_id']}": number_in(row["original_submission_time"])
        for row in output_rows(folder, "attempts.csv", *columns, needed=False)
        if row["attempt"] != "0"
    }


def _preempted(folder: Path, asked: Mapping[str, str]) -> dict[str, str]:
    """Return those of the jobs that were to be preempted that have been: others ended before."""
    columns = ("job_id", "workload_name", "final_state", "cause")
    gone = {
        f"{row['workload_name']}!{row['job_id']}"
        for row in output_rows(folder, "attempts.csv", *columns, needed=False)
        if (row["final_state"], row["cause"]) == ("COMPLETED_KILLED", PREEMPTED)
    }
    return {name: why for name, why in asked.items() if name in gone}


def _jobs(folder: Path, origins: dict[str, float]) -> Iterator[tuple[str, JobLine]]:
    columns = (
        "job_id",
        "workload_name",
        "submission_time",
        "requested_number_of_resources",
        "requested_time",
        "final_state",
        "starting_time",
        "finish_time",
        "metadata",
    )
    for row in output_rows(folder, "jobs.csv", *columns):
        name, submit = f"{row['workload_name']}!{row['job_id']}", number_in(row["submission_time"])
        requested = number_in(row["requested_time"])
        yield (
            name,
            JobLine(
                name,
                int(number_in(row["requested_number_of_resources"])),
                submit,
                origins.get(name, submit),
                requested if requested >= 0 else None,
                row["final_state"],
                number_in(row["starting_time"]) if row["starting_time"] else None,
                number_in(row["finish_time"]) if row["finish_time"] else None,
                printable(row["metadata"]),
            ),
        )


def _states(folder: Path) -> MachineStates:
    rows = [
        (number_in(row["time"]), number_in(row["nb_idle"]), number_in(row.get("nb_down", "0")))
        for row in output_rows(folder, "machine_states.csv", "time", "nb_idle")
    ]
    table = np.array(rows, dtype=np.float64).reshape(len(rows), 3)
    return MachineStates(table[:, 0], table[:, 1], table[:, 2])

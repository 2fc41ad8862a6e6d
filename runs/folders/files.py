"""Read a run's output folder for `explain`: jobs, starts, and units over time."""

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
from pipistrelle.protocol.base.whole import only_regular, read_whole
from pipistrelle.protocol.fields import PREEMPTED
from pipistrelle.runs.folders.packed import packed_rows
from pipistrelle.server.engine.jobs import Labels
from pipistrelle.server.outputs.folder import COMMAND_FILE, CONFIG_FILE, OUTPUT_PREFIX, check_outputs

Floats = NDArray[np.float64]
#: maximum number of job ids among which the most similar id is searched
_MOST_NAMES: Final = 5000
#: maximum characters shown of a scheduler's reason
_SHOWN: Final = 300
#: maximum characters of one cell: no message of a scheduler is longer
_LONGEST_CELL: Final = 1 << 27


class ExplainError(PipistrelleError):
    """A run or a job cannot be explained."""


class JobLine(Struct, array_like=True):
    """A job as a run's output files describe it; times in seconds.

    Attributes:
        queued: the submit time by which the queue is sorted. It is that of the first attempt if requeued jobs keep
            their position.
        requested: the requested walltime; None without walltime.
        labels: names as in `Job.labels`; None if unknown, because the output files do not have labels.
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
    """How many units are free and down over time.

    From ``times[i]`` (s) on, ``idle[i]`` units are free and ``down[i]`` are down.
    """

    times: Floats
    idle: Floats
    down: Floats


class RunFiles(Struct):
    """The contents of a run's output folder, as far as the run wrote them."""

    folder: Path
    config: dict[str, Any]
    #: None if the run did not finish, for example because it was killed
    summary: dict[str, Any] | None
    jobs: dict[str, JobLine]
    #: {job id: start time (s)}, in order of start
    starts: dict[str, float]
    #: {job id: time of rejection (s)}
    rejections: dict[str, float]
    #: {job id: the scheduler's reason for starting or rejecting it}
    whys: dict[str, str]
    states: MachineStates
    #: the latest time in the outputs (s)
    until: float
    #: {id of a preempted job: the scheduler's reason, "" if it gave no reason}
    preempted: dict[str, str] = field(default_factory=dict)

    def wait_ends(self, line: JobLine) -> float:
        """Return when (s) a job stopped waiting.

        That is its start, cancellation or rejection, or else the end of the outputs.
        """
        if line.start is not None:
            return line.start
        if line.state == "CANCELLED" and line.end is not None:
            return line.end
        if line.state == "REJECTED":
            return max(self.rejections.get(line.id, line.submit), line.submit)
        return self.until

    def of_workload(self, key: str) -> Any:
        """Return a value, such as ``epoch``, of the run's first workload.

        The value is from the run's configuration; None if it is missing.
        """
        first = next(iter(self.config["workloads"].values()), None)
        return first.get(key) if isinstance(first, dict) else None

    @property
    def left_out(self) -> str | None:
        """Return a sentence about jobs dropped before the run began.

        Return None if there are none.
        """
        dropped = self.config.get("dropped")
        if not isinstance(dropped, dict) or not dropped:
            return None
        reasons = ", ".join(f"{printable(str(reason))}: {count}" for reason, count in dropped.items())
        return f"The run left out jobs before it began ({reasons})."

    @property
    def scheduler(self) -> str:
        """Return the name that the scheduler gave when it connected."""
        return printable(str(self.config["scheduler"].get("name", "")))


def find_job(name: str, known: list[str], where: str, left_out: str | None = None) -> str:
    """Return the id of the job called ``name``: ``w0!17``, or ``17`` if unambiguous.

    Args:
        where: the run's folder, for the error.
        left_out: a sentence about jobs dropped before the run, for the error.

    Raises:
        ExplainError: no id matches, or several ids match.
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
    """Read the outputs of a run.

    Raise PipistrelleError if they are damaged, or mixed from several runs.
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
            jobs[name].start = start  # this start time is exact: out_jobs.csv has six decimals
    states = _states(folder)
    if len(states.times):
        until = max(until, float(states.times[-1]))
    preempted = _preempted(folder, asked) if asked else {}
    return RunFiles(folder, config, summary, jobs, starts, rejections, whys, states, until, preempted)


def check_folder(folder: Path) -> None:
    """Raise ExplainError unless ``folder`` is a folder."""
    if not folder.is_dir():
        what = "this is a file, not a folder" if folder.exists() else "there is no such folder"
        raise ExplainError(what, where=str(folder), expected="the outputs of 'pipistrelle run'")


def read_config(folder: Path) -> dict[str, Any]:
    """Return the configuration of a run from its outputs.

    Raise errors as `read_run` does.
    """
    check_folder(folder)
    config = output_json(folder / CONFIG_FILE)
    if config is None:
        raise ExplainError(
            f"the folder has no {CONFIG_FILE}", where=str(folder), expected="the outputs of 'pipistrelle run'"
        )
    check_outputs(folder)
    if not isinstance(config.get("scheduler"), dict) or not isinstance(config.get("workloads"), dict):
        raise ExplainError("the file is not a run's configuration", where=str(folder / CONFIG_FILE))
    return config


def read_command(folder: Path) -> dict[str, Any] | None:
    """Return the description of a run; None if there is none.

    Raise ExplainError if the file is unreadable.
    """
    return output_json(folder / COMMAND_FILE)


def output_json(path: Path) -> dict[str, Any] | None:
    """Read a JSON file as a dict; return None if it does not exist.

    Raise ExplainError if the file is unreadable.
    """
    try:
        found = json.loads(read_whole(path))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ExplainError(f"cannot read the file ({error.strerror or error})", where=str(path)) from None
    except (ValueError, RecursionError):
        raise ExplainError("the file is not JSON", where=str(path), hint="Was the run killed while it wrote?") from None
    if not isinstance(found, dict):
        raise ExplainError("the file is not a JSON object", where=str(path))
    return found


def output_rows(folder: Path, name: str, *columns: str, needed: bool = True) -> Iterator[dict[str, str]]:
    """Yield the rows of an output table as dicts; skip an incomplete last line.

    If the folder has packed rows (`pack_rows`) instead of the table, yield the packed rows. If it has neither, raise
    ExplainError if ``needed``, else yield nothing.
    """
    path = folder / f"{OUTPUT_PREFIX}{name}"
    csv.field_size_limit(_LONGEST_CELL)
    try:
        with open(path, encoding="utf-8", newline="", opener=only_regular) as file:
            lines = csv.reader((line for line in file if line.endswith("\n")), strict=True)
            header = next(lines, [])
            missing = [column for column in columns if column not in header]
            if missing:
                raise ExplainError(f"the column {missing[0]} is missing", where=str(path), hint="Is it a run's output?")
            places = {column: header.index(column) for column in header}
            for line in lines:
                if len(line) != len(header):  # an incomplete line
                    return
                yield {column: line[place] for column, place in places.items()}
    except FileNotFoundError:
        packed = packed_rows(folder, name.removesuffix(".csv"))
        if packed is not None:
            yield from packed
        elif needed:
            raise ExplainError(f"the folder has no {path.name}", where=str(folder)) from None
    except OSError as error:
        raise ExplainError(f"cannot read the file ({error.strerror or error})", where=str(path)) from None
    except UnicodeDecodeError:
        raise ExplainError("the file is not UTF-8 text", where=str(path)) from None
    except csv.Error:  # the file ends inside a quoted field
        return


def number_in(text: str) -> float:
    """Parse a table cell as a finite number, or raise ExplainError."""
    with suppress(ValueError):
        number = float(text)
        if isfinite(number):
            return number
    raise ExplainError("a value in the outputs is not a number", found=f"'{printable(text)[:60]}'")


def _origins(folder: Path, config: dict[str, Any]) -> dict[str, float]:
    """Return {job id of an attempt: submit time (s) of the first attempt}.

    The result is empty if requeued jobs go to the queue's end.
    """
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
    """Return the entries of ``asked`` whose jobs were preempted.

    ``asked`` is {id of a job to be preempted: reason}. A job may have ended before its preemption took effect; such
    jobs are left out.
    """
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

"""Output files written once, when a run begins or ends: labels, schedule, summary."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import UNSET

from pipistrelle.protocol.base.whole import write_whole
from pipistrelle.protocol.resources.amounts import CORES
from pipistrelle.server.engine.jobs import LABEL_NAMES
from pipistrelle.server.outputs.csv_file import csv_text, special, unwritable
from pipistrelle.server.outputs.metrics import Summary
from pipistrelle.traces.logs.labels import named_column
from pipistrelle.traces.workload import Workload

LABEL_COLUMNS: Final = ",".join(("job_id", "workload_name", *LABEL_NAMES))
#: Batsim's columns; `scheduling_time` and `simulation_time` stay empty: wall-clock times would differ between runs
SCHEDULE_COLUMNS: Final = (
    "batsim_version,consumed_joules,makespan,max_slowdown,max_turnaround_time,max_waiting_time,mean_slowdown,"
    "mean_turnaround_time,mean_waiting_time,nb_computing_machines,nb_grouped_switches,nb_jobs,nb_jobs_finished,"
    "nb_jobs_killed,nb_jobs_rejected,nb_jobs_success,nb_machine_switches,scheduling_time,simulation_time,success_rate,"
    "time_computing,time_idle,time_sleeping,time_switching_off,time_switching_on,time_unavailable"
)


def labels_csv(workloads: Mapping[str, Workload]) -> str:
    """Return the content of ``labels.csv``.

    It has one line for each job, but none for workloads without labels.
    """
    lines = [LABEL_COLUMNS]
    for prefix, workload in workloads.items():
        columns = [named_column(workload, name) for name in LABEL_NAMES]
        if any(column is not None for column in columns):
            texts = [_fields(column or [""] * len(workload)) for column in columns]
            lines += map(",".join, zip(_fields(workload.ids), repeat(prefix), *texts))
    return "\n".join(lines) + "\n"


def _fields(texts: Sequence[str]) -> Sequence[str]:
    """Return texts as CSV fields; return ``texts`` itself if none needs quotes."""
    return texts if special("".join(texts)) is None else list(map(csv_text, texts))


def schedule_csv(summary: Summary, version: str) -> str:
    """Return the content of Batsim's schedule file.

    It has a header and one line with the run's totals.
    """
    killed = summary.killed_at_walltime + summary.killed
    finished = summary.completed + killed
    span = summary.makespan if summary.horizon is UNSET else summary.horizon
    units, unavailable = float(summary.units), 0.0
    if summary.resources is not UNSET:  # all times are those of cores
        units, unavailable = summary.resources[CORES].total, summary.resources[CORES].unavailable
    elif summary.reliability is not None:
        unavailable = summary.reliability.unavailable
    values = [
        f"pipistrelle {version}",
        _seconds(0.0),
        _seconds(summary.makespan),
        _seconds(summary.max_slowdown),
        _seconds(summary.max_turnaround),
        _seconds(summary.max_wait),
        _seconds(summary.mean_slowdown),
        _seconds(summary.mean_turnaround),
        _seconds(summary.mean_wait),
        str(summary.units),
        "0",
        str(summary.jobs),
        str(finished),
        str(killed),
        str(summary.rejected),
        str(summary.completed),
        "0",
        "",
        "",
        _seconds(summary.completed / summary.jobs if summary.jobs else 0.0),
        _seconds(summary.computing),
        _seconds(units * span - summary.computing - unavailable),
        *[_seconds(0.0)] * 3,
        _seconds(unavailable),
    ]
    return f"{SCHEDULE_COLUMNS}\n{','.join(values)}\n"


def _seconds(value: float | None) -> str:
    return f"{value or 0.0:.6f}"


def to_json(value: Any) -> str:
    """Return a value as indented JSON with a final newline."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def write_output(path: str | Path, text: str, option: str = "--out") -> None:
    """Replace a file's content as a whole; raise OutputFailed if that fails.

    ``option`` is the command-line option that chooses the path.
    """
    try:
        write_whole(path, [text.encode()])
    except OSError as error:
        raise unwritable(path, error, option) from None


def remove_outputs(paths: Iterable[str | Path]) -> None:
    """Remove output files of an earlier run, so that they are not taken for new ones."""
    for path in map(Path, paths):
        if path.is_file() and not path.is_symlink():
            try:
                path.unlink()
            except OSError as error:
                raise unwritable(path, error) from None

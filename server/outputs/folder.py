"""The files in a run's output folder, and when each is written."""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from pipistrelle.platforms.resources.shared_nodes import SharedNodes
from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.protocol.base.state import Kept
from pipistrelle.protocol.base.whole import read_whole
from pipistrelle.protocol.fields import package_version
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.outputs.attempt_recorder import AttemptRecorder
from pipistrelle.server.outputs.metrics import Summary
from pipistrelle.server.outputs.node_book import NodeBook
from pipistrelle.server.outputs.once import labels_csv, remove_outputs, schedule_csv, to_json, write_output
from pipistrelle.server.outputs.queue_recorder import QueueRecorder
from pipistrelle.server.outputs.recorder import JobNames, Recorder
from pipistrelle.server.outputs.resource_book import TakesRecorder
from pipistrelle.traces.workload import Workload

if TYPE_CHECKING:
    from pipistrelle.server.hosts.hosts import Hosts

#: prefix of every output's name, as with Batsim's option ``-e DIR/out``
OUTPUT_PREFIX: Final = "out_"
#: file with the command line, which is not part of the result
COMMAND_FILE: Final = f"{OUTPUT_PREFIX}command.json"
CONFIG_FILE: Final = f"{OUTPUT_PREFIX}config.json"
SUMMARY_FILE: Final = f"{OUTPUT_PREFIX}summary.json"
#: names of all outputs; some are optional
_WRITTEN: Final = tuple(
    f"{OUTPUT_PREFIX}{name}"
    for name in (
        "config.json",
        "labels.csv",
        "jobs.csv",
        "machine_states.csv",
        "decisions.csv",
        "schedule.csv",
        "summary.json",
        "attempts.csv",
        "nodes.csv",
        "outages.csv",
        "queue.csv",
        "takes.csv",
        "command.json",
    )
)
#: names of all outputs, and of tables that may also exist as Parquet
OUTPUT_FILES: Final = (*_WRITTEN, *(f"{name[:-4]}.parquet" for name in _WRITTEN if name.endswith(".csv")))
#: outputs with a digest in the summary; not schedule.csv (it has a version) and command.json (it names inputs)
_CHECKED: Final = tuple(
    name for name in _WRITTEN if name not in (f"{OUTPUT_PREFIX}schedule.csv", SUMMARY_FILE, COMMAND_FILE)
)
#: fields of the configuration that its digest covers, besides the jobs
_DECISIVE: Final = ("platform", "hosts_sha256", "dropped")
#: fields of the configuration that are not inputs, and fields that only describe an input
_NO_INPUTS: Final = ("run_id", "scheduler", "versions")
_ONLY_SAID: Final = ("name", "description", "source")
#: outputs that show what happened to jobs and machine; the files of decisions, queue and takes follow from them
_RESULTS: Final = tuple(
    f"{OUTPUT_PREFIX}{name}.csv" for name in ("jobs", "machine_states", "attempts", "nodes", "outages")
)


#: part of a snapshot's file name between the prefix and the number
SNAPSHOT: Final = "snapshot-"


def snapshots_in(folder: Path, prefix: str = OUTPUT_PREFIX) -> list[Path]:
    """Return the snapshots of a run in its output folder, oldest first."""
    return sorted(path for path in folder.glob("*.gz") if path.name.startswith(prefix + SNAPSHOT))


def remove_snapshots(prefix: str) -> None:
    """Remove an earlier run's snapshots, whose paths begin with ``prefix``."""
    place = Path(prefix)
    remove_outputs(snapshots_in(place.parent, place.name))


class MixedOutputs(PipistrelleError):
    """The outputs in a folder are from different runs."""


Writing = Recorder | AttemptRecorder | QueueRecorder | TakesRecorder


class Outputs(Protocol):
    """Destination of a run's results; methods raise OutputFailed if they cannot write."""

    def observers(self) -> Sequence[Observer]:
        """Return the observers that write files during the run."""

    def metered(self, hosts: "Hosts") -> Observer | None:
        """Return the observer of the hosts' energy, or None.

        The engine must not delay its calls to this observer.
        """

    def before(self, config: dict[str, Any]) -> None:
        """Write files when the run begins.

        ``config`` (JSON values) contains everything that decides the result.
        """

    def after(self, summary: Summary) -> None:
        """Write files at the end, for whatever reason the run ended."""

    def flush(self) -> None:
        """Write all rows to the files."""

    def state(self) -> Any:
        """Return the lengths of the files as plain values."""

    def restore(self, state: Any) -> None:
        """Continue the existing files; called instead of `before`."""


class FolderOutputs(Kept):
    """Outputs of `pipistrelle run` in a folder; see docs/reference/outputs.md.

    Args:
        nodes: the observer that records the nodes, if they can fail; the run must call it before this object.
        asked: the command line (JSON values), written to a file; None writes no such file.
        shared: the nodes with resources, which jobs share; None: a machine without them.
        names: names of jobs and nodes, for the table of jobs; None: without these columns.
    """

    _kept = ("_recorders",)

    def __init__(
        self,
        folder: Path,
        nodes: NodeBook | None = None,
        asked: Mapping[str, Any] | None = None,
        *,
        workloads: Mapping[str, Workload] | None = None,
        queue_lengths: bool = False,
        shared: SharedNodes | None = None,
        names: JobNames | None = None,
    ) -> None:
        self._folder = folder
        self._asked = asked
        self._workloads = workloads or {}
        prefix = str(folder / OUTPUT_PREFIX)
        self._recorders: tuple[Writing, ...] = (
            Recorder(prefix, fails=nodes is not None, names=names, shares=shared is not None),
        )
        if nodes is not None:
            self._recorders += (AttemptRecorder(prefix, nodes),)
        if queue_lengths:
            self._recorders += (QueueRecorder(prefix),)
        if shared is not None:
            self._recorders += (TakesRecorder(prefix, shared),)

    def observers(self) -> Sequence[Observer]:
        """Return the observers that write files during the run."""
        return self._recorders

    def metered(self, hosts: "Hosts") -> Observer | None:
        """Return None: ``jobs.csv`` has the jobs' energy, and no file has the machine's."""
        return None

    def before(self, config: dict[str, Any]) -> None:
        """Remove an earlier run's outputs, then write configuration, labels and command."""
        remove_outputs(self._folder / name for name in OUTPUT_FILES)
        remove_outputs(snapshots_in(self._folder))
        write_output(self._folder / CONFIG_FILE, to_json(config))
        write_output(self._folder / f"{OUTPUT_PREFIX}labels.csv", labels_csv(self._workloads))
        if self._asked is not None:
            write_output(self._folder / COMMAND_FILE, to_json(self._asked))

    def flush(self) -> None:
        """Write all rows to the files."""
        for recorder in self._recorders:
            recorder.flush()

    def after(self, summary: Summary) -> None:
        """Write ``schedule.csv`` and then the summary, which has digests of other files."""
        write_output(self._folder / f"{OUTPUT_PREFIX}schedule.csv", schedule_csv(summary, package_version()))
        digests = _digests(self._folder)
        told = {
            **msgspec.to_builtins(summary),
            "inputs_sha256": _inputs_digest(self._folder),
            "results_sha256": _digest_of([(name, digests[name]) for name in _RESULTS if name in digests]),
            "sha256": digests,
        }
        write_output(self._folder / SUMMARY_FILE, to_json(told))


def check_outputs(folder: Path) -> None:
    """Raise MixedOutputs if output files differ from the digests in the summary.

    Missing files are ignored. Nothing is checked if there is no summary, because the run continues or was killed.
    """
    try:
        summary = msgspec.json.decode(read_whole(folder / SUMMARY_FILE))
    except (OSError, ValueError, RecursionError):
        return
    told = summary.get("sha256") if isinstance(summary, dict) else None
    if not isinstance(told, dict):  # written by an older version
        return
    others = [name for name, digest in _digests(folder).items() if told.get(name) != digest]
    if others:
        raise MixedOutputs(
            "the outputs in this folder are not all of one run",
            where=str(folder),
            found=f"{' and '.join(others)} changed after {SUMMARY_FILE} was written",
            hint="The files were changed or copied. Run again into a new folder.",
        )


def _digests(folder: Path) -> dict[str, str]:
    """Return {output file: SHA-256}.

    The configuration's digest covers only machine and jobs.
    """
    found = {}
    for name in _CHECKED:
        path = folder / name
        if not path.is_file():
            continue
        with (
            suppress(OSError, ValueError, LookupError, AttributeError, TypeError, RecursionError),
            path.open("rb") as file,
        ):
            if name == CONFIG_FILE:
                config = msgspec.json.decode(file.read())
                jobs = [(prefix, workload["sha256"]) for prefix, workload in config["workloads"].items()]
                decisive = [jobs, *(config[key] for key in _DECISIVE)]
                found[name] = _digest_of(decisive)
            else:
                found[name] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def _inputs_digest(folder: Path) -> str | None:
    """Return a digest of a run's inputs without their names; None if unreadable."""
    path = folder / CONFIG_FILE
    if not path.is_file():  # reading a pipe may never end
        return None
    try:
        config = msgspec.json.decode(read_whole(path))
        inputs = {key: value for key, value in config.items() if key not in _NO_INPUTS}
        inputs["platform"] = _unnamed(config["platform"])
        inputs["workloads"] = {prefix: _unnamed(one) for prefix, one in config["workloads"].items()}
    except (OSError, ValueError, LookupError, AttributeError, RecursionError):
        return None
    return _digest_of(inputs)


def _unnamed(described: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in described.items() if key not in _ONLY_SAID}


def _digest_of(values: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(values)).hexdigest()

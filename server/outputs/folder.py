"""The files of a run in its output folder: which there are, what is written when."""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.protocol.base.state import Kept
from pipistrelle.protocol.fields import package_version
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.outputs.attempt_recorder import AttemptRecorder
from pipistrelle.server.outputs.metrics import Summary
from pipistrelle.server.outputs.node_book import NodeBook
from pipistrelle.server.outputs.once import labels_csv, remove_outputs, schedule_csv, to_json, write_output
from pipistrelle.server.outputs.queue_recorder import QueueRecorder
from pipistrelle.server.outputs.recorder import Recorder
from pipistrelle.traces.workload import Workload

if TYPE_CHECKING:
    from pipistrelle.server.hosts.hosts import Hosts

#: every output's name begins with this, as with Batsim's ``-e DIR/out``
OUTPUT_PREFIX: Final = "out_"
#: how a run was called, beside the outputs: it is no part of the result
COMMAND_FILE: Final = f"{OUTPUT_PREFIX}command.json"
CONFIG_FILE: Final = f"{OUTPUT_PREFIX}config.json"
SUMMARY_FILE: Final = f"{OUTPUT_PREFIX}summary.json"
#: names of all that may be written: three of them of runs in which nodes can fail, and the queue's if it is wanted
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
        "command.json",
    )
)
#: the same, and tables that may be there as Parquet, too
OUTPUT_FILES: Final = (*_WRITTEN, *(f"{name[:-4]}.parquet" for name in _WRITTEN if name.endswith(".csv")))
#: those that have a digest in the summary; of the others one has a version in it, one differs with the input's name
_CHECKED: Final = tuple(
    name for name in _WRITTEN if name not in (f"{OUTPUT_PREFIX}schedule.csv", SUMMARY_FILE, COMMAND_FILE)
)
#: what of the configuration counts, beside the jobs; the rest may differ where all outputs are the same
_DECISIVE: Final = ("platform", "hosts_sha256", "dropped")
#: of the configuration: what is no input, and what is only said of a machine or a workload
_NO_INPUTS: Final = ("run_id", "scheduler", "versions")
_ONLY_SAID: Final = ("name", "description", "source")
#: what tells how jobs and machine fared: decisions have led to it, and the queue follows from it
_RESULTS: Final = tuple(
    f"{OUTPUT_PREFIX}{name}.csv" for name in ("jobs", "machine_states", "attempts", "nodes", "outages")
)


#: what stands in the names of a run's snapshots between what all its outputs begin with and their numbers
SNAPSHOT: Final = "snapshot-"


def snapshots_in(folder: Path, prefix: str = OUTPUT_PREFIX) -> list[Path]:
    """Return a folder's snapshots of the run whose outputs' names begin with ``prefix``, from the oldest on."""
    return sorted(path for path in folder.glob("*.gz") if path.name.startswith(prefix + SNAPSHOT))


def remove_snapshots(prefix: str) -> None:
    """Remove the snapshots of an earlier run whose outputs' paths begin with ``prefix``."""
    place = Path(prefix)
    remove_outputs(snapshots_in(place.parent, place.name))


class MixedOutputs(PipistrelleError):
    """The outputs in a folder are not those of one run."""


#: what writes while a run goes on
Writing = Recorder | AttemptRecorder | QueueRecorder


class Outputs(Protocol):
    """Where the results of a run go."""

    def observers(self) -> Sequence[Observer]:
        """Return what writes while the run goes on."""

    def metered(self, hosts: "Hosts") -> Observer | None:
        """Return what writes of the hosts' energy, if anything does; it is told of each thing as it happens."""

    def before(self, config: dict[str, Any]) -> None:
        """Write what is known before the run begins; ``config`` is all that decides its result, JSON values only.

        Raises
        ------
        OutputFailed
            when it cannot be written.
        """

    def after(self, summary: Summary) -> None:
        """Write what is known at the end, whatever the end was; OutputFailed as above."""

    def flush(self) -> None:
        """Let the rows so far reach the disk; OutputFailed as above."""

    def state(self) -> Any:
        """Return how far the files are, as plain values; OutputFailed as above."""

    def restore(self, state: Any) -> None:
        """Write on to the files that there are, in place of `before`; OutputFailed as above."""


class FolderOutputs(Kept):
    """The outputs of `pipistrelle run`, in an existing folder; docs/reference/outputs.md describes them.

    Parameters
    ----------
    folder
        where they are written.
    nodes
        where nodes can fail, what keeps account of them, and is told of everything before these outputs are.
    asked
        how the run was called, JSON values, for a file of its own; None: without that file.
    workloads
        whose jobs' labels are written.
    queue_lengths
        whether the queue's length is written.
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
    ) -> None:
        self._folder = folder
        self._asked = asked
        self._workloads = workloads or {}
        prefix = str(folder / OUTPUT_PREFIX)
        self._recorders: tuple[Writing, ...] = (Recorder(prefix, fails=nodes is not None),)
        if nodes is not None:
            self._recorders += (AttemptRecorder(prefix, nodes),)
        if queue_lengths:
            self._recorders += (QueueRecorder(prefix),)

    def observers(self) -> Sequence[Observer]:
        """Return the recorders."""
        return self._recorders

    def metered(self, hosts: "Hosts") -> Observer | None:
        """Return None: the jobs' lines have their energy, there is no file of the machine's."""
        return None

    def before(self, config: dict[str, Any]) -> None:
        """Remove an earlier run's outputs and snapshots; write configuration, labels, and how the run was called."""
        remove_outputs(self._folder / name for name in OUTPUT_FILES)
        remove_outputs(snapshots_in(self._folder))
        write_output(self._folder / CONFIG_FILE, to_json(config))
        write_output(self._folder / f"{OUTPUT_PREFIX}labels.csv", labels_csv(self._workloads))
        if self._asked is not None:
            write_output(self._folder / COMMAND_FILE, to_json(self._asked))

    def flush(self) -> None:
        """Let the rows so far reach the disk."""
        for recorder in self._recorders:
            recorder.flush()

    def after(self, summary: Summary) -> None:
        """Write aggregates, and at last the summary, with the digests of the others: what has it is whole."""
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
    """Raise MixedOutputs if the outputs in a folder are not all of the run whose summary it has.

    Without a summary, as where a run goes on or was killed, nothing can be said, nor for a file that is not there.
    """
    try:
        summary = msgspec.json.decode((folder / SUMMARY_FILE).read_bytes())
    except (OSError, ValueError):
        return
    told = summary.get("sha256") if isinstance(summary, dict) else None
    if not isinstance(told, dict):  # of an older version
        return
    others = [name for name, digest in _digests(folder).items() if told.get(name) != digest]
    if others:
        raise MixedOutputs(
            "the outputs in this folder are not those of one run",
            where=str(folder),
            found=f"another {' and '.join(others)} than {SUMMARY_FILE} was written with",
            hint="They were changed or copied since; run it once more, into a folder of its own.",
        )


def _digests(folder: Path) -> dict[str, str]:
    """Return {name: SHA-256} of the outputs that are there; of the configuration's machine and jobs."""
    found = {}
    for name in _CHECKED:
        path = folder / name
        if not path.is_file():
            continue
        with suppress(OSError, ValueError, LookupError, AttributeError, TypeError), path.open("rb") as file:
            if name == CONFIG_FILE:
                config = msgspec.json.decode(file.read())
                jobs = [(prefix, workload["sha256"]) for prefix, workload in config["workloads"].items()]
                decisive = [jobs, *(config[key] for key in _DECISIVE)]
                found[name] = _digest_of(decisive)
            else:
                found[name] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def _inputs_digest(folder: Path) -> str | None:
    """Return a digest of all that decides a run's result apart from the scheduler; None if nothing tells it any more.

    Versions, and names of files, machines and workloads, are no part of it.
    """
    path = folder / CONFIG_FILE
    if not path.is_file():  # what is no file may have no end
        return None
    try:
        config = msgspec.json.decode(path.read_bytes())
        inputs = {key: value for key, value in config.items() if key not in _NO_INPUTS}
        inputs["platform"] = _unnamed(config["platform"])
        inputs["workloads"] = {prefix: _unnamed(one) for prefix, one in config["workloads"].items()}
    except (OSError, ValueError, LookupError, AttributeError):
        return None
    return _digest_of(inputs)


def _unnamed(described: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in described.items() if key not in _ONLY_SAID}


def _digest_of(values: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(values)).hexdigest()

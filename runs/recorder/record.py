"""Record slurmctld with a centre's configuration and a workload."""

import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.json import encode, format

from pipistrelle.platforms.slurm.machine import default_partition
from pipistrelle.protocol.base.errors import InputError, printable
from pipistrelle.protocol.base.whole import write_whole
from pipistrelle.runs.recorder.configuration import private_configuration
from pipistrelle.runs.recorder.daemons import Daemons, RecorderError, require_programs
from pipistrelle.runs.recorder.jobs import TimedCommand, planned_jobs
from pipistrelle.runs.recorder.packing import Packing
from pipistrelle.runs.slurm.files import read_slurm_files
from pipistrelle.runs.slurm.jobs import fitted
from pipistrelle.runs.slurmctld.build import build_tools
from pipistrelle.server.errors import OutputFailed
from pipistrelle.server.outputs.lock import unwritable_folder
from pipistrelle.traces.workload import Workload


class RecordingSummary(Struct, frozen=True):
    """What a finished recording contains.

    Attributes:
        version: of slurmctld.
        jobs, starts, passes: how many.
        seconds: length of virtual time (s).
        left: whether jobs still waited or ran at the end.
        changes: keys of the configuration that were left out.
        remarks: warnings about jobs.
    """

    version: str
    jobs: int
    starts: int
    passes: int
    seconds: float
    left: bool
    changes: list[str]
    remarks: list[str]


def record(
    config: Path,
    workload: Workload,
    out: Path,
    *,
    until: float,
    prefix: str | None = None,
    accounting: Sequence[str] = (),
    commands: Sequence[TimedCommand] = (),
    progress: Callable[[int, float], None] = lambda jobs, now: None,
) -> RecordingSummary:
    """Run slurmctld and its slurmds in virtual time, and record them.

    The recording is written to a new folder.

    Args:
        config: the folder of slurm.conf.
        prefix: the folder in which Slurm is installed; None: the programs in the PATH.
        accounting: files of associations and QOS.
        commands: commands of scontrol that create reservations.
        until: longest virtual time after the last submission (s).
        progress: called with the number of submitted jobs and the time (s).

    Raises:
        PipistrelleError: Slurm or a compiler is missing, the configuration or workload cannot be used, a daemon
            failed, or the folder is not empty or cannot be written.
    """
    made = _made(out)
    try:
        return _recorded(config, workload, out, until, prefix, accounting, commands, progress)
    except BaseException:
        if made:
            shutil.rmtree(out, ignore_errors=True)
        raise


def _recorded(
    config: Path,
    workload: Workload,
    out: Path,
    until: float,
    prefix: str | None,
    accounting: Sequence[str],
    commands: Sequence[TimedCommand],
    progress: Callable[[int, float], None],
) -> RecordingSummary:
    slurm = require_programs(prefix)
    build_tools()
    private = private_configuration(config, len(workload), accounting)
    files = read_slurm_files(str(config / "slurm.conf"))
    jobs, remarks = planned_jobs(fitted(workload, files, files.platform), default_partition(files.conf) or "")
    users = sorted({job.cells["user"] for job in jobs})
    for job in jobs:
        if accounting and job.cells["qos"]:
            job.options.append(f"--qos={job.cells['qos']}")
    with Daemons(private, slurm, users) as daemons:
        version = daemons.command("scontrol", "--version").strip()
        remarks += daemons.submit_all(jobs, commands, progress)
        jobs = [job for job in jobs if "id" in job.cells]
        if not jobs:
            raise RecorderError("slurmctld refused every job", found=remarks[-1])
        left = daemons.wait(daemons.now + until, progress, len(jobs))
        shown = daemons.command("scontrol", "-o", "-d", "show", "job")
        figures = daemons.command("sdiag")
        seconds = daemons.now
        packing = Packing(daemons.folder / "slurmctld.log", str(daemons.folder))
    found = RecordingSummary(
        version, len(jobs), len(packing.starts), len(packing.passes), seconds, left, private.changes, remarks
    )
    try:
        packing.write(out, jobs, commands, shown)
        write_whole(out / "sdiag.txt", [figures.encode()])
        write_whole(out / "manifest.json", [format(encode(found), indent=2), b"\n"])
        for name, text in _last(private.files):
            write_whole(out / name, [text.encode()])
    except OSError as error:
        raise OutputFailed(
            f"the recording cannot be written ({error.strerror or error})",
            where=printable(str(error.filename or out)),
            hint="Free space, or choose another folder with --out, and record again.",
        ) from error
    return found


def _made(out: Path) -> bool:
    """Create the output folder, before hours are spent on the recording.

    Return whether it did not exist.
    """
    made = not out.exists()
    try:
        out.mkdir(parents=True, exist_ok=True)
        if not made and any(out.iterdir()):
            raise InputError("the folder exists", where=printable(str(out)), hint="Give a new folder with --out.")
    except OSError as error:
        raise unwritable_folder(out, error) from error
    return made


def _last(files: dict[str, str]) -> Iterable[tuple[str, str]]:
    """Return the files, slurm.conf last.

    A folder without slurm.conf does not count as a recording.
    """
    return sorted(files.items(), key=lambda item: item[0] == "slurm.conf")

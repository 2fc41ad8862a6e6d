"""The example recording of three jobs on two nodes, in the form of a recording of the real slurmctld."""

import lzma
from pathlib import Path

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "recording"
#: {name: content} of its files, without the log
FILES = {path.name: path.read_text() for path in sorted(EXAMPLE.iterdir()) if path.suffix != ".xz"}
CONF, EVENTS = FILES["slurm.conf"], FILES["jobs.events"]
LOG = lzma.decompress((EXAMPLE / "decisions.log.xz").read_bytes()).decode()


def write_recording(folder: Path) -> Path:
    """Write the recording to a new folder and return the folder."""
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    write_log(folder, LOG)
    return folder


def write_log(folder: Path, text: str) -> None:
    """Replace the recording's log."""
    (folder / "decisions.log.xz").write_bytes(lzma.compress(text.encode()))

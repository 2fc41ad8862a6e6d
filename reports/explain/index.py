"""The index of a run: all facts that explain its jobs, saved with the outputs.

The first explanation repeats the run and writes `out_explain.index`. The index holds a digest of the outputs, so an
index of other outputs is noticed and replaced. If the file cannot be written, every explanation repeats the run.
"""

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from pipistrelle.protocol.base.whole import only_regular, read_whole, write_whole
from pipistrelle.protocol.fields import package_version
from pipistrelle.reports.explain.looks import RunIndex, TooMuch, Wanted
from pipistrelle.runs.folders.files import read_run
from pipistrelle.server.outputs.folder import COMMAND_FILE, OUTPUT_PREFIX

INDEX_FILE: Final = f"{OUTPUT_PREFIX}explain.index"
#: the output files that an explanation reads
_SOURCES: Final = (
    *(f"{OUTPUT_PREFIX}{name}" for name in ("config.json", "summary.json", "jobs.csv", "decisions.csv")),
    *(f"{OUTPUT_PREFIX}{name}" for name in ("machine_states.csv", "attempts.csv")),
    COMMAND_FILE,
)


def open_index(folder: Path, *, repeat: bool, wanted: Wanted, trust: bool = False) -> RunIndex:
    """Return the saved index of a run, or make a new one and save it if possible.

    Args:
        repeat: whether the run may be repeated. If not, only the outputs are read, and no index is saved.
        wanted: selects the jobs to explain, by id and labels. It is used only if an index of all jobs would take too
            much memory. The index of the selected jobs is not saved.
        trust: whether Python code that the folder names as the scheduler may run. If not, a run with such a scheduler
            is explained from its outputs, and no index is saved.

    Raises:
        PipistrelleError: if there are no outputs, or repeating the run failed.
    """
    if not repeat:
        return RunIndex("", read_run(folder), "--no-replay was given")
    found = kept_index(folder)
    if found is not None:
        return found
    key = _key(folder)
    from pipistrelle.reports.explain.making import make_index  # slow to import

    try:
        made = make_index(folder, key, trust=trust)
    except TooMuch:
        return make_index(folder, key, wanted, trust=trust)
    if trust or made.not_replayed is None:
        _keep(folder / INDEX_FILE, made)
    return made


def kept_index(folder: Path) -> RunIndex | None:
    """Return the index of a run that is saved in its folder.

    Return None if the folder has no index that was made from its present outputs.
    """
    if not (folder / INDEX_FILE).is_file():
        return None
    found = _kept(folder / INDEX_FILE, _key(folder))
    if found is not None:
        found.files.folder = folder
    return found


def _key(folder: Path) -> str:
    """Return a digest of the outputs in a folder and of this program's version.

    The program makes the index from these outputs.
    """
    digest = hashlib.sha256(package_version().encode())
    for name in _SOURCES:
        digest.update(f"\n{name}\n".encode())
        with suppress(OSError), open(folder / name, "rb", opener=only_regular) as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def _kept(path: Path, key: str) -> RunIndex | None:
    """Return a run's index saved in the file ``path``.

    Return None if it is unreadable or was saved with another ``key``.
    """
    with suppress(OSError, ValueError, RecursionError):
        content = read_whole(path)
        if _key_of.decode(content).key == key:
            return _decoder.decode(content)
    return None


def _keep(path: Path, index: RunIndex) -> None:
    """Save a run's index in the file ``path``.

    Do nothing if the file cannot be written, or is a pipe.
    """
    if path.exists() and not path.is_file():  # a pipe without a reader would never accept the index
        return
    files = replace(index.files, folder=Path())  # the same wherever the folder is
    with suppress(OSError):
        write_whole(path, [msgspec.msgpack.encode(replace(index, files=files), enc_hook=_plain)])


class _KeyOnly(Struct):
    key: str


def _plain(value: Any) -> Any:
    return value.tobytes() if isinstance(value, np.ndarray) else str(value)


def _rich(kind: Any, value: Any) -> Any:
    return Path(value) if kind is Path else np.frombuffer(value, dtype=np.float64)


_key_of: Final = msgspec.msgpack.Decoder(_KeyOnly)
_decoder: Final = msgspec.msgpack.Decoder(RunIndex, dec_hook=_rich)

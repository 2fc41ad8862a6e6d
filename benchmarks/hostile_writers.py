"""Stop every command that writes files at the worst moment.

No file may be left incomplete. Each command first runs undisturbed. This gives the expected files, and the number of
function calls and returns (Python and C) after the first file is opened for writing. Then it is disturbed in one of
three ways:

- killed with SIGKILL at one of these steps;
- run on a disk that has room for only a part of its files (a small tmpfs, which needs root);
- run with too few file descriptors, from the start or from the first writing on.

Each file must have its old content or its complete new content. A file that grows, such as a run's table, must end with
a complete line. After a kill, the same command must succeed, with the expected files and no temporary ones. Without
room or descriptors, the command must end with one message and exit code 6 or 71. The exit code is 1 if a file, a
message or a code is wrong.

    python benchmarks/hostile_writers.py [--kills 200] [--full 0] [--descriptors 0] [--seed 1] [--only COMMAND]
"""

import argparse
import gzip
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from hostile.child import command
from hostile.writers import MADE, SILENT, WRITERS, Writer, prepare

#: content of the files before the command
OLD = b"what was there before\n"
#: exit code of `serve` if no scheduler connects; it then removes connection.json
REFUSED = 4
#: share of kills close to the opening or renaming of a file, and the largest distance in calls
_NEAR, _AROUND = 0.6, 40
_FROM = os.O_WRONLY | os.O_RDWR
#: files with the results of a run, which a run that ends early has, too
RESULTS: Final = ("_schedule.csv", "_summary.json", ".jsonl", ".jsonl.gz")
#: exit codes on a full disk and without descriptors
NO_ROOM: Final = 6
NO_DESCRIPTORS: Final = 71
#: size of the small disk, and of a unit of its space (bytes)
_DISK, _PAGE = 64 << 20, 4096
#: most descriptors left to a command that needs more
_MOST_DESCRIPTORS: Final = 20


def _is_whole(name: str, content: bytes) -> bool:
    """Return whether a file, which may be compressed, ends with a whole line."""
    try:
        return (gzip.decompress(content) if name.endswith(".gz") else content).endswith(b"\n")
    except (EOFError, OSError):
        return False


class Writing:
    """Runs one command in a folder, undisturbed or disturbed.

    Attributes:
        calls: number of function calls and returns since the first writing, in the undisturbed command.
        new: {name: content} of the files that the undisturbed command wrote.
        half: number of kills after which a file was half-written, or only some of the files were new.
    """

    def __init__(self, home: Path, writer: Writer) -> None:
        self._home = home
        self._writer = writer
        self._before = {path.name for path in home.iterdir()}
        self.calls = 0
        #: numbers of the calls at which a file was opened or renamed
        self._marks: list[int] = []
        self.new: dict[str, bytes] = {}
        self.half = 0

    def whole(self) -> str:
        """Run the command undisturbed, and record its calls and files.

        Return an error text, or an empty one.
        """
        with tempfile.TemporaryDirectory() as folder:
            counts = Path(folder) / "calls"
            self.clear()
            before = states(self._home)
            code, said = command(self._home, list(self._writer.words), lambda: _count(counts))
            if code != self._writer.code:
                return f"ends with exit code {code}: {said[-400:]}"
            self.calls, *self._marks = map(int, counts.read_text().split())
        self.new = self._found()
        declared = {*self._writer.files, *self._writer.tables}
        missing = declared - self.new.keys()
        if missing and self._writer.code != REFUSED:
            return f"does not write {sorted(missing)}"
        more = changed(before, states(self._home)) - declared
        more = {name for name in more if name.partition("/")[0] not in self._writer.also}
        return f"also writes {sorted(more)}" if more else ""

    def call(self, pick: random.Random) -> int:
        """Choose at random when to kill the command.

        Return the number of a function call or return, counted from the first writing.
        """
        if self._marks and pick.random() < _NEAR:
            return max(1, pick.choice(self._marks) + pick.randint(-_AROUND, _AROUND))
        return pick.randint(1, max(1, self.calls))

    def kill(self, call: int) -> str:
        """Kill the command at a function call, then run the command again, undisturbed.

        Return an error text, or an empty one.

        Args:
            call: the number of the function call or return, counted from the start of the command.
        """
        self.clear()
        self._place_old()
        code, said = command(self._home, list(self._writer.words), lambda: _die_at(call))
        if code not in (-signal.SIGKILL, self._writer.code):
            return f"ends with exit code {code}: {said[-400:]}"
        wrong = self._wrong()
        if wrong:
            return wrong
        self.half += code == -signal.SIGKILL and self._is_half()
        if self._writer.fresh:
            self.clear()
        code, said = command(self._home, list(self._writer.words))
        if code != self._writer.code:
            return f"then ends with exit code {code}: {said[-400:]}"
        return self._wrong(again=True)

    def fill(self, pick: random.Random) -> str:
        """Run the command on a disk with room for only a part of its files.

        Return an error text, or "".
        """
        pages = sum(-(-len(content) // _PAGE) for content in self.new.values())
        room = pick.randint(0, pages)
        self.clear()
        self._place_old()
        with ballast(self._home, room):
            code, said = command(self._home, list(self._writer.words))
        return self._refused(code, said, NO_ROOM, f"{room} of {pages} pages")

    def starve(self, pick: random.Random) -> str:
        """Run the command with too few descriptors; return an error text, or ""."""
        late, most = pick.random() < 0.5, pick.randint(0, _MOST_DESCRIPTORS)
        self.clear()
        self._place_old()

        def limit() -> None:
            used = max(map(int, os.listdir("/proc/self/fd")))
            resource.setrlimit(resource.RLIMIT_NOFILE, (used + most, used + most))

        def limit_once() -> None:
            nonlocal late
            if late:
                late = False
                limit()

        if late:
            code, said = command(self._home, list(self._writer.words), lambda: _on_writing(limit_once))
            return self._refused(code, said, NO_DESCRIPTORS, f"{most} descriptors from the first writing on")
        code, said = command(self._home, list(self._writer.words), limit)
        return self._refused(code, said, NO_DESCRIPTORS, f"{most} descriptors")

    def _refused(self, code: int | None, said: str, expected: int, why: str) -> str:
        """Return what is wrong after a command that lacked something, or ""."""
        if code == self._writer.code and (self._writer.code != 1 or said.count("\n") > 1):
            wrong = self._wrong(again=not self._writer.optional)
        elif code != expected:
            wrong = f"ends with exit code {code}: {said[-400:]}"
        else:
            last = said.rstrip("\n").rpartition("\n")[2]
            wrong = self._wrong(early=True)
            parts = [path.name for path in self._home.rglob("*.part")]
            if not wrong and parts:
                wrong = f"leaves {parts}"
            if not wrong and not last.startswith("pipistrelle: "):
                wrong = f"says {said[-400:]!r}"
            if not wrong and "Traceback" in said:
                wrong = f"shows a traceback: {said[-400:]!r}"
        return wrong and f"with {why}: {wrong}"

    def _place_old(self) -> None:
        """Write the files that were there before the command."""
        if self._writer.fresh:
            return
        for name in self._writer.files:
            (self._home / name).parent.mkdir(exist_ok=True)
            if "/" not in name:
                (self._home / name).write_bytes(OLD)

    def _is_half(self) -> bool:
        """Return whether a file is half-written, or only some of the files are new."""
        if any(True for _ in self._home.rglob(".*.part")):
            return True
        found = self._found()
        news = [
            found.get(name) not in (None, OLD) if name in self._writer.files else found.get(name) == self.new.get(name)
            for name in (*self._writer.files, *self._writer.tables)
        ]
        begun = any(found.get(name) for name in self._writer.tables)
        return (any(news) or begun) and not all(news)

    def _wrong(self, *, again: bool = False, early: bool = False) -> str:
        """Return the first error in the files that the command wrote, or an empty text.

        With ``again`` the command has been repeated, so all files must be complete and new. With ``early`` it has
        ended itself before its time, so the results of a run are those of a part of it.
        """
        found = self._found()
        for name in self._writer.files:
            content = found.get(name)
            if content == self.new.get(name) or (content is None and not again):
                continue
            if content == OLD and not again:
                continue
            if early and content is not None and name.endswith(RESULTS) and _is_whole(name, content):
                continue
            if content is None or self._writer.valid is None or not self._writer.valid(content):
                return f"{name} is neither old nor new: {content and content[-80:]!r}"
        for name in self._writer.tables:
            content = found.get(name, b"")
            if content and not content.endswith(b"\n"):
                return f"{name} ends in {content[-80:]!r}"
            if content != self.new[name] if again else not self.new[name].startswith(content):
                return f"{name} differs"
        parts = [path.name for path in self._home.rglob("*.part")] if again else []
        return f"leaves {parts}" if parts else ""

    def _found(self) -> dict[str, bytes]:
        names = (*self._writer.files, *self._writer.tables)
        return {name: (self._home / name).read_bytes() for name in names if (self._home / name).is_file()}

    def clear(self) -> None:
        """Remove the command's output files and any temporary files that it left."""
        for path in self._home.iterdir():
            if path.name not in self._before:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        for name in self._writer.files:
            (self._home / name).unlink(missing_ok=True)
        for path in self._home.rglob("*.part"):
            path.unlink()


def states(home: Path) -> dict[str, tuple[int, ...]]:
    """Return {name: state} of all files in a folder.

    The state of a file changes if the file does.
    """
    found: dict[str, tuple[int, ...]] = {}
    for path in home.rglob("*"):
        if path.is_file():
            its = path.stat()
            found[str(path.relative_to(home))] = (its.st_ino, its.st_size, its.st_mtime_ns)
    return found


def changed(before: dict[str, tuple[int, ...]], after: dict[str, tuple[int, ...]]) -> set[str]:
    """Return the names of the files that differ between two results of `states`."""
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


def silent(home: Path, name: str) -> str:
    """Run a command of `SILENT`, which must write no file.

    Return an error text if it writes a file or ends otherwise than expected, or "".
    """
    words, expected = SILENT[name]
    before = states(home)
    code, said = command(home, list(words))
    if code != expected:
        return f"{name} ends with exit code {code}: {said[-400:]}"
    written = changed(before, states(home))
    return f"{name} writes {sorted(written)}" if written else ""


@contextmanager
def ballast(home: Path, room: int) -> Iterator[None]:
    """Leave only ``room`` pages free on the folder's disk."""
    disk = os.statvfs(home)
    heavy = home / "ballast"
    with heavy.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(1, disk.f_bavail * disk.f_bsize - room * _PAGE))
    try:
        yield
    finally:
        heavy.unlink()


@contextmanager
def small_disk(folder: Path) -> Iterator[bool]:
    """Mount a small file system in memory on a folder.

    Yield whether that was possible; it needs root.
    """
    mount = shutil.which("mount")
    words = [mount or "mount", "-t", "tmpfs", "-o", f"size={_DISK}", "none", str(folder)]
    if mount is None or subprocess.run(words, capture_output=True, check=False).returncode:
        yield False
        return
    try:
        yield True
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def _on_writing(act: Callable[[], None]) -> None:
    """Call ``act`` whenever this process opens a file for writing or renames one.

    Only files below the working directory count.
    """
    home = f"{os.getcwd()}{os.sep}"

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event not in ("open", "os.rename") or not isinstance(arguments[0], str | bytes | os.PathLike):
            return
        writes = event == "os.rename" or arguments[2] & _FROM
        if writes and os.path.abspath(os.fsdecode(arguments[0])).startswith(home):
            act()

    sys.addaudithook(hook)


def _count(counts: Path) -> None:
    """Count this process's function calls and returns after its first writing.

    The total is written to the file ``counts``, followed by the numbers of the calls at which a file was opened or
    renamed.
    """
    number = 0
    marks: list[int] = []
    end = os._exit

    def count(*_: Any) -> None:
        nonlocal number
        number += 1

    def mark() -> None:
        marks.append(number)
        sys.setprofile(count)

    def tell(code: int) -> None:
        sys.setprofile(None)
        told = " ".join(map(str, (number, *marks)))
        counts.write_text(told)
        end(code)

    os._exit = tell  # type: ignore[assignment]
    _on_writing(mark)


def _die_at(call: int) -> None:
    """Kill this process at a given function call or return.

    ``call`` is its number, counted from the first writing.
    """
    left = call

    def count(*_: Any) -> None:
        nonlocal left
        left -= 1
        if left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)

    _on_writing(lambda: sys.setprofile(count))


def made(home: Path) -> None:
    """Create the input files that the commands read."""
    prepare(home)
    for words in MADE:
        code, said = command(home, list(words))
        assert code == 0, f"{words}: {said}"


def trials(
    totals: dict[str, int], seed: int, only: str, tell: Callable[[str], None]
) -> tuple[dict[str, int], int, list[str]]:
    """Disturb each command several times.

    Returns {way: number of trials}, the number of kills while files were half-written, and one text per error.

    Args:
        totals: {way: number of trials over all commands}; the ways are kills, full and descriptors.
        seed: decides when and how commands are disturbed.
        only: part of a command's name or option; other commands are skipped.
        tell: receives lines about the progress.
    """
    wrong: list[str] = []
    done = dict.fromkeys(totals, 0)
    half = 0
    writers = [writer for writer in WRITERS if only in writer.option and writer.is_possible]
    with tempfile.TemporaryDirectory(prefix="kill-") as folder, small_disk(Path(folder)) as is_small:
        if totals["full"] and not is_small:
            raise SystemExit("a small file system cannot be mounted here (that needs root)")
        home = Path(folder)
        made(home)
        for place, writer in enumerate(writers):
            began = time.monotonic()
            writing = Writing(home, writer)
            text = writing.whole()
            if text:
                wrong.append(f"{' '.join(writer.words)}: {text}")
                tell(f"WRONG {wrong[-1]}")
            pick = random.Random(f"{seed}:{place}")
            for way, total in totals.items():
                times = (total * (place + 1)) // len(writers) - total * place // len(writers)
                for _ in range(0 if text else times):
                    done[way] += 1
                    if way == "kills":
                        call = writing.call(pick)
                        fault = writing.kill(call)
                        fault = fault and f"killed at call {call} of {writing.calls}: {fault}"
                    else:
                        fault = writing.fill(pick) if way == "full" else writing.starve(pick)
                    if fault:
                        wrong.append(f"{' '.join(writer.words)}, {fault}")
                        tell(f"WRONG {wrong[-1]}")
            half += writing.half
            took = time.monotonic() - began
            tell(f"{writer.option}: {writing.calls:,} calls, {writing.half} kills half-way, {took:.1f} s")
            with suppress(FileNotFoundError):  # processes that end after their parent was killed
                writing.clear()
    return done, half, wrong


def main() -> int:
    """Disturb the commands and print the errors; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--full", type=int, default=0, help="number of runs on a full disk")
    parser.add_argument("--descriptors", type=int, default=0, help="number of runs with too few descriptors")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="only commands whose name or option contains this")
    options = parser.parse_args()
    totals = {"kills": options.kills, "full": options.full, "descriptors": options.descriptors}
    done, half, wrong = trials(totals, options.seed, options.only, lambda text: print(text, flush=True))
    print(f"{half} of {done['kills']} kills while files were half-written")
    counts = ", ".join(f"{count} {way}" for way, count in done.items() if totals[way])
    print(f"{counts}, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""Kill every command that writes files, and check that no file is left incomplete.

Each command first runs undisturbed. This gives the expected files, and the number of function calls and
returns (Python and C) after the first file is opened for writing. Then the command is killed with SIGKILL at one of
these steps. Each file must have its old content or its complete new content. A file that grows, such as a run's table,
must end with a complete line. Afterwards the same command must succeed, with the expected files and no temporary ones.
The exit code is 1 if a file is wrong.

    python benchmarks/hostile_writers.py [--kills 200] [--seed 1] [--only COMMAND]
"""

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hostile.child import command
from hostile.writers import MADE, WRITERS, Writer, prepare

#: content of the files before the command
OLD = b"what was there before\n"
#: exit code of `serve` if no scheduler connects; it then removes connection.json
REFUSED = 4
#: share of kills close to the opening or renaming of a file, and the largest distance in calls
_NEAR, _AROUND = 0.6, 40
_FROM = os.O_WRONLY | os.O_RDWR


class Writing:
    """Runs one command in a folder, undisturbed or killed at a given call.

    Attributes:
        calls: number of function calls and returns since the first writing, in the undisturbed command.
        new: {name: content} of the files that the undisturbed command wrote.
    """

    def __init__(self, home: Path, writer: Writer) -> None:
        self._home = home
        self._writer = writer
        self._before = {path.name for path in home.iterdir()}
        self.calls = 0
        #: numbers of the calls at which a file was opened or renamed
        self._marks: list[int] = []
        self.new: dict[str, bytes] = {}

    def whole(self) -> str:
        """Run the command undisturbed, and record its calls and files.

        Return an error text, or an empty one.
        """
        counts = self._home / "calls"
        self._clear()
        code, said = command(self._home, list(self._writer.words), lambda: _count(counts))
        if code != self._writer.code:
            return f"ends with exit code {code}: {said[-400:]}"
        self.calls, *self._marks = map(int, counts.read_text().split())
        self.new = self._found()
        missing = {*self._writer.files, *self._writer.tables} - self.new.keys()
        if missing and self._writer.code != REFUSED:
            return f"does not write {sorted(missing)}"
        return ""

    def call(self, pick: random.Random) -> int:
        """Return the number of a randomly chosen function call or return at which to kill the command."""
        if self._marks and pick.random() < _NEAR:
            return max(1, pick.choice(self._marks) + pick.randint(-_AROUND, _AROUND))
        return pick.randint(1, max(1, self.calls))

    def kill(self, call: int) -> str:
        """Kill the command at a call, then repeat it undisturbed.

        Return an error text, or an empty one.
        """
        self._clear()
        if not self._writer.fresh:
            for name in self._writer.files:
                (self._home / name).parent.mkdir(exist_ok=True)
                if "/" not in name:
                    (self._home / name).write_bytes(OLD)
        code, said = command(self._home, list(self._writer.words), lambda: _die_at(call))
        if code not in (-signal.SIGKILL, self._writer.code):
            return f"ends with exit code {code}: {said[-400:]}"
        wrong = self._wrong()
        if wrong:
            return wrong
        if self._writer.fresh:
            self._clear()
        code, said = command(self._home, list(self._writer.words))
        if code != self._writer.code:
            return f"then ends with exit code {code}: {said[-400:]}"
        return self._wrong(again=True)

    def _wrong(self, *, again: bool = False) -> str:
        """Return the first error in the files that the command wrote, or an empty text.

        With ``again`` the command has been repeated, so all files must be complete and new.
        """
        found = self._found()
        for name in self._writer.files:
            content = found.get(name)
            if content == self.new.get(name) or (content is None and not again):
                continue
            if content == OLD and not again:
                continue
            if content is None or self._writer.valid is None or not self._writer.valid(content):
                return f"{name} is neither old nor new: {content and content[-80:]!r}"
        for name in self._writer.tables:
            content = found.get(name, b"")
            if content and not content.endswith(b"\n"):
                return f"{name} ends in {content[-80:]!r}"
            if again and content != self.new[name]:
                return f"{name} differs"
        parts = [path.name for path in self._home.rglob("*.part")] if again else []
        return f"leaves {parts}" if parts else ""

    def _found(self) -> dict[str, bytes]:
        names = (*self._writer.files, *self._writer.tables)
        return {name: (self._home / name).read_bytes() for name in names if (self._home / name).is_file()}

    def _clear(self) -> None:
        """Remove the command's output files and any temporary files that it left."""
        for path in self._home.iterdir():
            if path.name not in self._before:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        for name in self._writer.files:
            (self._home / name).unlink(missing_ok=True)
        for path in self._home.rglob("*.part"):
            path.unlink()


def _on_writing(act: Callable[[], None]) -> None:
    """Call ``act`` each time that this process opens a file for writing or renames one.

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


def kills(total: int, seed: int, only: str, tell: Callable[[str], None]) -> tuple[int, list[str]]:
    """Kill each command several times.

    Returns the number of kills and one text per error.

    Args:
        total: number of kills, over all commands.
        seed: decides the calls at which commands are killed.
        only: part of a command's name or option; other commands are skipped.
        tell: receives lines about the progress.
    """
    wrong: list[str] = []
    done = 0
    writers = [writer for writer in WRITERS if only in writer.option]
    with tempfile.TemporaryDirectory(prefix="kill-") as folder:
        home = Path(folder)
        made(home)
        for place, writer in enumerate(writers):
            began = time.monotonic()
            writing = Writing(home, writer)
            text = writing.whole()
            pick = random.Random(f"{seed}:{place}")
            times = (total * (place + 1)) // len(writers) - total * place // len(writers)
            for _ in range(0 if text else times):
                call = writing.call(pick)
                fault = writing.kill(call)
                done += 1
                if fault:
                    wrong.append(f"{' '.join(writer.words)}, killed at call {call} of {writing.calls}: {fault}")
                    tell(f"WRONG {wrong[-1]}")
            if text:
                wrong.append(f"{' '.join(writer.words)}: {text}")
                tell(f"WRONG {wrong[-1]}")
            tell(f"{writer.option}: {writing.calls:,} calls, {times} kills, {time.monotonic() - began:.1f} s")
            writing._clear()
    return done, wrong


def main() -> int:
    """Kill the commands and print the errors; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="only commands whose name or option contains this")
    options = parser.parse_args()
    done, wrong = kills(options.kills, options.seed, options.only, lambda text: print(text, flush=True))
    print(f"{done} kills, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

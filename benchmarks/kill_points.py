"""Kill runs with SIGKILL at many points, resume them, and compare their outputs.

The outputs must equal those of an undisturbed run, byte for byte. The server, its scheduler or both are killed: at a
wall-clock time, at a random step (the n-th function call or return), at a notice, or while a snapshot is written.
Some runs are killed again after they resume. If no snapshot exists yet, the run starts from the beginning. Processes
are forks of this one, so modules are already imported. The scheduler is a child of the server, as with `run`, runs in
the server's process, or is started separately, as with `serve`.

    python benchmarks/kill_points.py [--points 1000] [--seed 1] [--jobs 3000] [--only NUMBER] [--steady]
"""

import argparse
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: ways to kill a run, used in turn: which process, and when
WAYS = (
    *("server-step", "server-snapshot", "server-notice", "scheduler-notice", "both-notice", "server-moment"),
    *("scheduler-moment", "both-moment", "in-process-step", "in-process-snapshot", "in-process-moment", "server-end"),
    *("server-restore", "served-step", "served-snapshot", "served-scheduler"),
)
#: time limit of a process (s)
LIMIT_S = 120
_KEPT = ("out_snapshot-", "out_session")


@dataclass(frozen=True)
class Cut:
    """At which points of its progress one run is killed, and how.

    Attributes:
        way: which process is killed and at what kind of point; one of `WAYS`.
        share: progress of the run at the first kill, from 0 to 1.
        again: the same for each further kill, after the run has resumed.
    """

    way: str
    share: float
    again: tuple[float, ...]

    @property
    def mode(self) -> str:
        """Where the scheduler runs.

        ``in-process``: in the server's process; ``child``: in a process that the server starts; ``served``: in a
        process that is started separately.
        """
        return next((mode for mode in ("in-process", "served") if self.way.startswith(mode)), "child")


@dataclass(frozen=True)
class Run:
    """The outputs and counts of an undisturbed run.

    Attributes:
        outputs: {name: content} of the output files.
        steps: number of function calls and returns.
        notices: number of replies that the engine applied.
        snapshots: number of snapshots taken.
        wall: wall time (s).
    """

    outputs: dict[str, bytes]
    steps: int
    notices: int
    snapshots: int
    wall: float


class _Scheduler:
    """A scheduler process with the interface of `subprocess.Popen`.

    The process is forked early and waits on a pipe for the command line that it will run.
    """

    def __init__(self, hook: Callable[[], None]) -> None:
        reading, self._writing = os.pipe()
        self.pid = os.fork()
        self.returncode: int | None = None
        if self.pid == 0:
            os.setsid()
            os.close(self._writing)
            with os.fdopen(reading, "rb") as words:
                told = words.read().split(b"\0")
            if not told[0]:
                os._exit(0)
            hook()
            _command([word.decode() for word in told[told.index(b"pipistrelle.cli") + 1 :]])
        os.close(reading)
        self._pidfd = os.pidfd_open(self.pid)

    def __call__(self, words: list[str], **_: Any) -> "_Scheduler":
        """Start the command line ``words`` and return the process, as `Popen` does."""
        self.release("\0".join(words).encode())
        return self

    def release(self, words: bytes = b"") -> None:
        """Send the process its command line, separated by null bytes.

        An empty command line ends the process.
        """
        if self._writing >= 0:
            os.write(self._writing, words)
            os.close(self._writing)
            self._writing = -1

    def forget(self) -> None:
        """Close this process's copy of the writing end of the pipe.

        The pipe carries the command line.
        """
        os.close(self._writing)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit code.

        Raise TimeoutExpired after ``timeout`` (s).
        """
        if self.returncode is None:
            if not select.select([self._pidfd], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("scheduler", timeout or 0.0)
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.returncode

    def kill(self) -> None:
        """Kill the process if it is alive."""
        if self.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


def _command(words: list[str]) -> None:
    """Run a ``pipistrelle`` command in this process, then exit with its exit code."""
    from pipistrelle.cli.main import main

    try:
        main(words)
    except SystemExit as end:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(end.code if isinstance(end.code, int) else 0)


def _quietly(hook: Callable[[], None]) -> None:
    """Discard the output of this process from now on, then call ``hook``."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    hook()


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _after_steps(steps: int, die: Callable[[], None]) -> None:
    """Call ``die`` after ``steps`` further function calls and returns."""
    left = steps

    def count(*_: Any) -> None:
        nonlocal left
        left -= 1
        if left <= 0:
            die()

    sys.setprofile(count)


def _before(owner: Any, name: str, count: int, act: Callable[[], None]) -> None:
    """Call ``act`` just before call number ``count`` of a method.

    Args:
        owner: the object or class with the method.
        name: name of the method.
        count: number of the call.
        act: the function to call.
    """
    method = getattr(owner, name)
    left = count

    def hooked(*arguments: Any, **named: Any) -> Any:
        nonlocal left
        left -= 1
        if left == 0:
            act()
        return method(*arguments, **named)

    setattr(owner, name, hooked)


class Killer:
    """Runs, kills and resumes simulations in a folder, and compares their outputs.

    Args:
        home: folder for the generated workload ``made.swf``; each run gets a subfolder.
        seed: decides everything except wall-clock times.
        jobs: number of jobs in the workload.
        ways: ways to kill a run, used in turn.
    """

    def __init__(self, home: Path, seed: int, jobs: int, ways: Sequence[str] = WAYS) -> None:
        self.home = home
        self.ways = ways
        self.seed = seed
        os.chdir(home)
        words = ["workload", "generate", "--jobs", str(jobs), "--machine-size", "64", "--seed", "7", "-o", "made.swf"]
        assert self._process(words) == 0
        more = [
            *("-w", "made.swf", "--failures", "exponential,mtbf=40d", "--repair", "6h", "--max-attempts", "3"),
            *("--quiet", "--snapshot-every", "sim:2d"),
        ]
        self.words = {"child": ["run", *more], "in-process": ["run", "--in-process", *more], "served": ["serve", *more]}
        self.whole = {mode: self._whole(mode) for mode in self.words}
        assert self.whole["child"].outputs == self.whole["in-process"].outputs
        self.ends: Counter[str] = Counter()

    def _whole(self, mode: str) -> Run:
        """Run a simulation undisturbed and return its outputs and counts."""
        out, counts = self.home / f"whole-{mode}", self.home / "counts"

        def hook(_: _Scheduler | None) -> None:
            from pipistrelle.runs.sessions.snapshot import Snapshots
            from pipistrelle.server.engine.engine import Engine

            notices, snapshots, steps = [0], [0], [0]
            _each(Engine, "apply", notices)
            _each(Snapshots, "take", snapshots)

            def count(*_: Any) -> None:
                steps[0] += 1

            def tell() -> None:
                sys.setprofile(None)
                counts.write_text(f"{steps[0]} {notices[0]} {snapshots[0]}")

            _before(Snapshots, "remove", 1, tell)
            sys.setprofile(count)

        assert self._process([*self.words[mode], "--out", str(out)], hook, mode=mode) == 0
        steps, notices, snapshots = map(int, counts.read_text().split())
        outputs = _files(out)
        began = time.monotonic()
        assert self._process([*self.words[mode], "--out", str(out)], mode=mode) == 0
        assert _files(out) == outputs
        return Run(outputs, steps, notices, snapshots, time.monotonic() - began)

    def cut(self, number: int) -> Cut:
        """Return how and at which progress run ``number`` is killed."""
        pick = random.Random(f"{self.seed}:{number}")
        way = self.ways[number % len(self.ways)]
        again = tuple(pick.random() for _ in range(pick.choice((1, 2) if way == "server-restore" else (0, 0, 0, 1, 2))))
        return Cut(way, pick.random(), again)

    def kill(self, number: int, cut: Cut) -> str:
        """Kill a run and resume it until it ends; return an error text or ""."""
        out = self.home / f"run-{number}"
        words = [*self.words[cut.mode], "--out", str(out)]
        going_on = ["resume", str(out), "--quiet", "--snapshot-every", "sim:2d"]
        said = [f"{cut}"]
        shares = [cut.share, *cut.again]
        fresh, anew = True, 0
        for turn in range(len(shares) + 4):
            share = shares[turn] if turn < len(shares) else None
            code = self._killed(words if fresh else going_on, cut, share)
            said.append(f"{'run' if fresh else 'resume'} at {share}: {code}")
            if code == 0:
                break
            fresh = not list(out.glob("out_snapshot-*"))
            anew += fresh
            if share is None and not (fresh and code == 2):
                break
        text = self._compared(out, cut.mode, code)
        self.ends["not hit" if len(said) == 2 else "begun anew" if anew else "gone on"] += 1
        if not text:
            for path in out.iterdir():
                path.unlink()
            out.rmdir()
        return f"{'; '.join(said)}: {text}" if text else ""

    def _compared(self, out: Path, mode: str, code: int) -> str:
        if code != 0:
            return f"ends with exit code {code}: {(self.home / 'err').read_text(errors='replace')[-500:]}"
        found, expected = _files(out), self.whole[mode].outputs
        if found.keys() != expected.keys():
            return f"other files: {sorted(found.keys() ^ expected.keys())}"
        return ", ".join(f"{name} differs" for name in found if found[name] != expected[name])

    def _killed(self, words: list[str], cut: Cut, share: float | None) -> int:
        """Run a command, kill it at a given progress, and return its exit code.

        ``share`` is the progress of the run, from 0 to 1. The command is not killed if ``share`` is None.
        """
        whole = self.whole[cut.mode]
        if share is None:
            return self._process(words, mode=cut.mode)
        if cut.way.endswith("moment"):
            return self._process(words, mode=cut.mode, moment=(cut.way, share * whole.wall * 1.5))
        notice, step = 1 + int(share * whole.notices), 1 + int(share * whole.steps)

        def hook(scheduler: _Scheduler | None) -> None:
            from pipistrelle.runs.execution.pause import Pause
            from pipistrelle.runs.sessions.snapshot import Snapshots
            from pipistrelle.server.engine.engine import Engine

            def die() -> None:
                if scheduler is not None and cut.way.startswith("both"):
                    scheduler.kill()
                _die()

            if cut.way.endswith("step"):
                _after_steps(step, die)
            elif cut.way == "server-restore" and words[0] == "resume":  # after the old session is copied
                _before(Pause, "restore", 1, lambda: _after_steps(1 + int(share * share * 20_000), die))
            elif cut.way in ("server-notice", "both-notice", "server-restore"):
                _before(Engine, "apply", notice, die)
            elif cut.way.endswith("snapshot"):
                which = 1 + int(share * whole.snapshots)
                inside = random.Random(share).choice((*range(1, 60), *range(60, 4000, 50)))
                _before(Snapshots, "take", which, lambda: _after_steps(inside, die))
            elif cut.way == "server-end":
                _before(Snapshots, "remove", 1, lambda: _after_steps(1 + int(share * 60), die))

        def scheduler_hook() -> None:
            from pipistrelle.schedulers.runtime.runtime import Runtime

            if cut.way in ("scheduler-notice", "served-scheduler"):
                _before(Runtime, "answer", notice, _die)

        return self._process(words, hook, scheduler_hook, mode=cut.mode)

    def _process(
        self,
        words: list[str],
        hook: Callable[[_Scheduler | None], None] = lambda scheduler: None,
        scheduler_hook: Callable[[], None] = lambda: None,
        *,
        mode: str = "child",
        moment: tuple[str, float] | None = None,
    ) -> int:
        """Run a command in a new process and return its exit code.

        Args:
            words: the command-line arguments.
            hook: called in the new process before the command, with the scheduler if that is a child.
            scheduler_hook: called in the scheduler's process before it starts.
            mode: where the scheduler runs; see `Cut.mode`.
            moment: the way to kill the run, and the wall time after which to do so (s).
        """
        client = _Scheduler(lambda: _quietly(scheduler_hook)) if mode == "served" else None
        told, telling = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.setsid()
            os.close(told)
            if client is not None:
                client.forget()
            error = os.open(self.home / "err", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            os.dup2(error, 2)
            os.dup2(error, 1)
            scheduler = None
            if mode == "child":
                scheduler = _Scheduler(scheduler_hook)
                subprocess.Popen = scheduler  # type: ignore[misc, assignment]
                os.write(telling, b"%d" % scheduler.pid)
            os.close(telling)
            hook(scheduler)
            _command(words)
        os.close(telling)
        with os.fdopen(told, "rb") as file:
            scheduler_pid = int(file.read() or 0)
        pidfd = os.pidfd_open(pid)
        if client is not None:
            out = words[words.index("--out") + 1] if "--out" in words else words[1]
            client(["-m", "pipistrelle.cli", "schedule", "easy", "--connect", f"{out}/connection.json", "--quiet"])
        try:
            if moment is not None and not select.select([pidfd], [], [], moment[1])[0]:
                victims = {"server": (pid,), "scheduler": (scheduler_pid,), "both": (scheduler_pid, pid)}
                for victim in victims.get(moment[0].partition("-")[0], (pid,)):
                    with suppress(ProcessLookupError):
                        os.kill(victim, signal.SIGKILL)
            if not select.select([pidfd], [], [], LIMIT_S)[0]:
                os.kill(pid, signal.SIGKILL)
                raise AssertionError(f"hangs: {words}")
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        finally:
            os.close(pidfd)
            if scheduler_pid:
                _gone(scheduler_pid)
            if client is not None:  # it may still be waiting for a server that never started
                client.kill()
                client.wait()


def _gone(pid: int) -> None:
    """Wait until a scheduler process ends whose server has ended.

    Raise AssertionError if it hangs.
    """
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        if not select.select([pidfd], [], [], LIMIT_S)[0]:
            os.kill(pid, signal.SIGKILL)
            raise AssertionError("a scheduler does not end when its server has gone")
    finally:
        os.close(pidfd)


def _each(owner: Any, name: str, count: list[int]) -> None:
    """Replace a method of ``owner`` by one that also counts its calls in ``count[0]``."""
    method = getattr(owner, name)

    def hooked(*arguments: Any, **named: Any) -> Any:
        count[0] += 1
        return method(*arguments, **named)

    setattr(owner, name, hooked)


def _files(out: Path) -> dict[str, bytes]:
    """Return {name: content} of the files in a folder."""
    return {path.name: path.read_bytes() for path in out.iterdir()}


def warm() -> None:
    """Import the modules that the commands need, so that their forks start fast."""
    from pipistrelle.cli.terminal.console import import_numpy

    import_numpy()
    import pipistrelle.cli.run.resume
    import pipistrelle.cli.run.run
    import pipistrelle.cli.run.schedule
    import pipistrelle.cli.terminal.heartbeat
    import pipistrelle.cli.terminal.summary
    import pipistrelle.cli.workload.generate
    import pipistrelle.runs.execution.run
    import pipistrelle.runs.sessions.resume  # noqa: F401


def kill_points(
    numbers: Sequence[int], seed: int, jobs: int, ways: Sequence[str], tell: Callable[[str], None]
) -> list[str]:
    """Kill and resume the runs with the given numbers; return one text per error.

    Args:
        numbers: the runs to kill.
        seed: decides where each run is killed.
        jobs: number of jobs in the workload.
        ways: ways to kill a run, used in turn.
        tell: receives lines about the progress.
    """
    warm()
    wrong = []
    with tempfile.TemporaryDirectory(prefix="kill-") as home:
        killer = Killer(Path(home), seed, jobs, ways)
        for mode, whole in killer.whole.items():
            tell(
                f"{mode}: {whole.steps:,} calls, "
                f"{whole.notices:,} notices, {whole.snapshots} snapshots, {whole.wall:.1f} s"
            )
        began = time.monotonic()
        for number in numbers:
            text = killer.kill(number, killer.cut(number))
            if text:
                wrong.append(f"point {seed}:{number}: {text}")
                tell(f"WRONG {wrong[-1]}")
            if number % 100 == 99:
                spent = time.monotonic() - began
                tell(f"{number + 1:,} points, {len(wrong)} wrong, {spent:.0f} s: {dict(killer.ends)}")
        tell(f"{len(numbers):,} points, {len(wrong)} wrong: {dict(killer.ends)}")
    return wrong


def main() -> int:
    """Kill and resume runs, and print the errors; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=3000)
    parser.add_argument("--only", type=int, help="only this point")
    parser.add_argument("--steady", action="store_true", help="at no moments of the wall clock: always the same points")
    options = parser.parse_args()
    numbers = range(options.points) if options.only is None else [options.only]
    ways = [way for way in WAYS if not (options.steady and way.endswith("moment"))]
    wrong = kill_points(numbers, options.seed, options.jobs, ways, lambda text: print(text, flush=True))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

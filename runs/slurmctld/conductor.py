"""Talk to the conductor, the C program that moves the clock of virtual time."""

import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from pipistrelle.protocol.base.errors import PipistrelleError

_PATIENCE_S: Final = 5.0


class VirtualTimeError(PipistrelleError):
    """Virtual time has ended: the conductor is gone, or a thread never sleeps."""

    exit_code = 4


class JobNews(NamedTuple):
    """A report that a job's process has begun (``struck`` is False) or was ended by a signal.

    Attributes:
        place: number of the process, for `VirtualTime.end_job`.
        job_id: Slurm's number of the job.
        restarts: how often Slurm has restarted the job.
        begun: the virtual time (ns) at which the process began.
        nodes: Slurm's list of the job's nodes.
    """

    begun: int
    job_id: int
    place: int
    restarts: int
    struck: bool
    nodes: str


class Conductor:
    """The conductor's process.

    Args:
        program: the compiled conductor.
        clock: the file that holds the clock.
    """

    def __init__(self, program: Path, clock: Path) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - a program of ours
            [program, clock], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        #: virtual time in ns
        self.now = 0
        #: number of connections to the ports that are answered outside virtual time
        self.calls = 0
        #: whether nothing is left to do up to this time
        self.reached = True
        self._news: list[JobNews] = []

    @property
    def pid(self) -> int:
        """Process number of the conductor."""
        return self._process.pid

    def take_news(self) -> list[JobNews]:
        """Return reports of the jobs that began or were ended by a signal since the last call, by time and number."""
        news, self._news = sorted(self._news), []
        return news

    def close(self) -> None:
        """End the conductor, which kills all processes in virtual time."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def tell(self, line: str) -> None:
        """Send the conductor a command that it does not answer; raise VirtualTimeError if the conductor is gone."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError):
            raise self._gone() from None

    def ask(self, line: str) -> None:
        """Send the conductor a command and wait until it is carried out; raise VirtualTimeError if that fails."""
        self.tell(line)
        assert self._process.stdout is not None
        while True:
            words = self._process.stdout.readline().decode().split()
            if not words:
                raise self._gone()
            if words[0] == "now":
                self.now, self.calls, self.reached = int(words[1]), int(words[2]), words[3] == "1"
                return
            if words[0] == "stuck":
                raise VirtualTimeError(
                    "a thread never sleeps, so virtual time cannot pass",
                    found=f"thread {words[2]} of process {words[1]}",
                )
            _, place, state, job_id, restarts, begun, nodes = words
            news = JobNews(int(begun), int(job_id), int(place), int(restarts), state == "struck", nodes)
            self._news.append(news)

    def _gone(self) -> VirtualTimeError:
        return VirtualTimeError("the conductor of virtual time ended", hint="It was killed, or memory ran out.")

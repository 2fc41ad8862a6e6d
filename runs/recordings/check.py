"""Compare the scheduler ``slurm`` with a recording of slurmctld: passes, whole runs and waits."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from pipistrelle.platforms.naming.hostlists import compressed
from pipistrelle.runs.recordings.names import JobStart
from pipistrelle.runs.recordings.passes import Difference, Player
from pipistrelle.runs.recordings.recording import Recording
from pipistrelle.runs.recordings.whole_runs import (
    Timing,
    equal,
    largest_error,
    mean_waits,
    pairs,
    play,
    play_on_engine,
    recorded_timing,
)

#: {what was compared: (name in `Player.counts`, name of the equal ones)}
_PASSES: Final = {
    "main passes": ("main passes", "main passes equal"),
    "backfill passes": ("backfill passes", "backfill passes equal"),
    "backfill outcomes": ("outcomes", "outcomes equal"),
    "priorities": ("priorities", "priorities equal"),
    "starts of a pass": ("starts", "starts on the same nodes"),
    "CPUs on each node": ("allocations", "allocations with the same CPUs"),
}
#: a delay is that of the model if it differs by less (s)
_SAME_DELAY: Final = 0.05
#: an end may cause a start that is so much later (s)
_EFFECT: Final = 10.0


class Agreement(Struct, frozen=True):
    """How many of the compared results of one kind (``what``) equal the recording."""

    what: str
    equal: int
    compared: int


class WholeRun(Struct, frozen=True):
    """A simulation of all submissions of a recording, from an empty machine, compared with the recording.

    Attributes:
        delays: "recorded" or "modelled".
        same: number of recorded starts that are simulated at the same second on the same nodes.
        same_second: number of recorded starts that are simulated at the same second, on any nodes.
        starts: number of simulated starts.
        largest_error: the largest relative error of a simulated mean wait.
        waits: {(what, name): mean wait (s)} of partitions, accounts and QOS.
        simulated: for each recorded start, the simulated start of the same job, or None.
        difference: text about the first start that differs, "" if none.
        cause: why it differs.
    """

    delays: str
    same: int
    same_second: int
    starts: int
    largest_error: float
    waits: dict[tuple[str, str], float]
    simulated: list[JobStart | None]
    difference: str
    cause: str


class SlurmCheck(Struct, frozen=True):
    """How close the scheduler ``slurm`` comes to a recording.

    Attributes:
        name: name of the recording.
        starts: the recorded starts of jobs.
        waits: {(what, name): recorded mean wait (s)}.
        passes: how many results of scheduling passes are equal. Each pass begins in the recorded state, so an earlier
            difference does not matter.
        differences: the passes that are decided differently.
        runs: whole runs, with recorded and with modelled delays.
    """

    name: str
    starts: list[JobStart]
    waits: dict[tuple[str, str], float]
    passes: list[Agreement]
    differences: list[Difference]
    runs: list[WholeRun]

    @property
    def agreements(self) -> list[Agreement]:
        """All comparisons with the recording, of passes and of whole runs."""
        whole = [Agreement(f"starts of a run, delays {one.delays}", one.same, len(self.starts)) for one in self.runs]
        return [*self.passes, *whole]


def check_recording(folder: Path, progress: Callable[[str], None] = lambda text: None) -> SlurmCheck:
    """Compare the scheduler ``slurm`` with a recording.

    Args:
        progress: called with the name of each part of the comparison when it begins.

    Raises:
        PipistrelleError: the folder is not a recording, or a file is missing or damaged.
    """
    recording = Recording(folder)
    progress("scheduling passes")
    player = Player(recording)
    player.play()
    counts = player.counts
    passes = [Agreement(what, counts[same], counts[name]) for what, (name, same) in _PASSES.items() if counts[name]]
    timing = recorded_timing(recording)
    progress("whole run, delays recorded")
    own = _compared(recording, "recorded", play(recording, timing), player.differences, None)
    progress("whole run, delays modelled")
    modelled = _compared(recording, "modelled", play_on_engine(recording), player.differences, timing)
    waits = mean_waits(recording, recording.starts)
    return SlurmCheck(recording.name, recording.starts, waits, passes, player.differences, [own, modelled])


def _compared(
    recording: Recording, delays: str, ours: list[JobStart], differences: Sequence[Difference], timing: Timing | None
) -> WholeRun:
    both = pairs(recording.starts, ours)
    real, own = mean_waits(recording, recording.starts), mean_waits(recording, ours)
    first = min(((one, other) for one, other in both if not equal(one, other)), key=_earlier, default=None)
    difference = cause = ""
    if first is not None:
        difference = _told(*first)
        cause = _cause(recording, _earlier(first), differences, timing)
    return WholeRun(
        delays=delays,
        same=sum(equal(one, other) for one, other in both),
        same_second=sum(other is not None and int(one.time) == int(other.time) for one, other in both),
        starts=len(ours),
        largest_error=largest_error(real, own),
        waits=own,
        simulated=[other for _, other in both],
        difference=difference,
        cause=cause,
    )


def _earlier(both: tuple[JobStart, JobStart | None]) -> float:
    one, other = both
    return one.time if other is None else min(one.time, other.time)


def _told(one: JobStart, other: JobStart | None) -> str:
    text = f"job {one.job} starts at {int(one.time):,} s"
    if other is None:
        return f"{text}, in the simulation never"
    if int(one.time) != int(other.time):
        return f"{text}, in the simulation at {int(other.time):,} s"
    return f"{text} on {compressed(one.nodes)}, in the simulation on {compressed(other.nodes)}"


def _cause(recording: Recording, time: float, differences: Sequence[Difference], timing: Timing | None) -> str:
    """Return a text that says why a simulated start at a time (s) differs from the recording.

    Args:
        differences: the passes that are decided differently.
        timing: the recorded details that the simulation does not use; None if it uses them.
    """
    decided = next((one for one in differences if one.time <= time + 1), None)
    if decided is not None:
        return f"the scheduler decides a step at {decided.time:,.2f} s differently ({decided.where})"
    if timing is None:
        return "the order of events within the second is different"
    late = _late_answers(recording, time, timing)
    if late:
        return late
    phase = next((one for one in reversed(timing.phases) if one[0] <= time + 1), (0.0, 0.0))
    if phase[1]:
        return f"slurmctld's main loop ran {phase[1]:g} s later in each second, from about {phase[0]:,.0f} s"
    return "the order of events within the second is different"


def _late_answers(recording: Recording, time: float, timing: Timing) -> str:
    """Return a text about a job that ended just before ``time`` whose nodes answered later or sooner than modelled."""
    found: list[tuple[float, str, float, float]] = []
    for start in recording.starts:
        end = start.time + recording.jobs[start.job.partition("_")[0]].runtime
        delay = timing.delays.get(start.job)
        if delay is not None and time - _EFFECT <= end <= time + 1:
            found.append((end, start.job, delay, recording.config.answers.delay(len(start.nodes))))
    for end, job, delay, modelled in sorted(found, reverse=True):
        if abs(delay - modelled) >= _SAME_DELAY:
            return (
                f"the nodes of job {job}, which ended at {int(end):,} s, answered after {delay:.2f} s;"
                f" the model assumes {modelled:.2f} s"
            )
    return ""

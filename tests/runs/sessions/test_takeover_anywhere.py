"""Any scheduler takes any run over, at any notice: drawn, as the states of runs are."""

import tempfile
from contextlib import suppress
from pathlib import Path

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.runs.stories import POLICIES, Left, Story, play, stories, straight

from pipistrelle.protocol.base.state import from_json, to_json
from pipistrelle.runs.execution.pause import Pause
from pipistrelle.runs.sessions.takeover import TakenOver
from pipistrelle.server.setup.setup import Setup

PREEMPTING = sorted(name for name in POLICIES if name.startswith("preempting"))
OTHERS = sorted(POLICIES.keys() - {*PREEMPTING})
#: those that plan nothing ahead, and keep no account of the past
FORGETFUL = ("fcfs-none-lowest", "fcfs-firstfit-lowest", "fcfs-easy-lowest", "fcfs-easy-sjbf-lowest", "sjf-easy-lowest")
#: a preempting scheduler takes over from another such; one that follows a log, from itself
PAIRS = (st.tuples(*2 * [st.sampled_from(OTHERS)]) | st.tuples(*2 * [st.sampled_from(PREEMPTING)])).filter(
    lambda pair: "recorded" in pair[0] or "recorded" not in pair[1]
)


def left_at(story: Story, name: str, folder: Path, share: int) -> tuple[str, TakenOver]:
    """Return how a run ends under a scheduler, and what lets another take it over after this share of it (%)."""
    ended, notices = straight(story, POLICIES[name](), folder / "whole")
    states: list[bytes] = []

    def leave(pause: Pause) -> None:
        if pause.notices == 1 + share * notices // 100:
            states.append(to_json(pause.state()))
            raise Left

    with suppress(Left):
        play(story, POLICIES[name](), folder / "first", leave)
    assume(states)
    (folder / "second").mkdir()
    setup = Setup.of(story.platform, story.workload, reliability=story.reliability)
    return ended, TakenOver(folder / "first", folder / "second", setup, from_json(states[0]))


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(story=stories(), pair=PAIRS, share=st.integers(0, 99))
def test_any_scheduler_takes_a_run_over(story: Story, pair: tuple[str, str], share: int) -> None:
    """Whatever is under way: none of its decisions is refused, and all parts agree at each notice."""
    with tempfile.TemporaryDirectory() as base:
        _, takes_over = left_at(story, pair[0], Path(base), share)
        play(story, POLICIES[pair[1]](), Path(base, "second"), Pause.check_invariants, takes_over)
        lines = Path(base, "second", "out_decisions.csv").read_text().splitlines()

    assert [line for line in lines[1:] if ",carried_out," not in line] == []


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(story=stories(), name=st.sampled_from(FORGETFUL), share=st.integers(0, 99))
def test_the_same_scheduler_decides_the_same(story: Story, name: str, share: int) -> None:
    """It gets all jobs in queue order, the running jobs, and the nodes out of service.

    It does not learn the order in which jobs held by class limits joined the queue.
    """
    assume(not story.platform.classes)
    with tempfile.TemporaryDirectory() as base:
        ended, takes_over = left_at(story, name, Path(base), share)
        again = play(story, POLICIES[name](), Path(base, "second"), Pause.check_invariants, takes_over)
        whole, second = (Path(base, one, "out_jobs.csv").read_text() for one in ("whole", "second"))

    assert (again, second) == (ended, whole)

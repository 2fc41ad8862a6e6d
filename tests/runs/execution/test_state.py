"""A run is taken out at any notice, through JSON, into a new engine and a new scheduler: the files are the same."""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from tests.runs.stories import POLICIES, Left, Story, play, stories, straight

from pipistrelle.protocol.base.state import from_json, to_json
from pipistrelle.runs.execution.pause import Pause
from pipistrelle.schedulers.policy.interfaces import Policy

#: number of examples over all policies
EXAMPLES, MANY_EXAMPLES = 300, 2000


def contents(folder: Path) -> dict[str, str]:
    """Return {file: its content}."""
    return {path.name: path.read_text() for path in sorted(folder.iterdir())}


def handed_over(story: Story, make: Callable[[], Policy], folder: Path, stops: list[int]) -> tuple[str, Path]:
    """Run in pieces: at each of these notices all objects are replaced by new ones from their state."""
    state: Any = None
    for number, stop in enumerate([*stops, 0]):
        here, there = folder / str(number), folder / str(number + 1)
        taken: list[bytes] = []

        def leave(
            pause: Pause,
            begun: bool = state is not None,
            stop: int = stop,
            taken: list[bytes] = taken,
            here: Path = here,
            to: Path = there,
        ) -> None:
            if begun:  # until the first notice to stop at, the run is that without an end
                pause.check_invariants()
            if pause.notices == stop:
                taken.append(to_json(pause.state()))
                shutil.copytree(here, to)
                raise Left

        try:
            return play(story, make(), here, leave, state), here
        except Left:
            state = from_json(taken[0])
    raise AssertionError("the last piece goes on to the end")


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize(
    "examples", [EXAMPLES, pytest.param(MANY_EXAMPLES, marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_run_resumes_from_its_state(name: str, examples: int) -> None:
    """Whatever is in progress, every output file has the same bytes; so does the state of a restored state."""
    make = POLICIES[name]

    @settings(
        max_examples=-(-examples // len(POLICIES)),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(story=stories(), shares=st.lists(st.integers(0, 99), min_size=1, max_size=3))
    def check(story: Story, shares: list[int]) -> None:
        with tempfile.TemporaryDirectory() as base:
            whole = Path(base, "whole")
            ended, notices = straight(story, make(), whole)
            stops = sorted({1 + share * notices // 100 for share in shares})
            event(f"states: {len(stops)}")
            again, folder = handed_over(story, make, Path(base), stops)
            assert again == ended
            assert contents(folder) == contents(whole)

    check()

"""A job's life: every step in every state."""

from typing import get_args

import pytest

from pipistrelle.protocol.fields import JobState
from pipistrelle.server.engine.jobs import LIFE, State, Step

#: the whole table, written a second time; transitions not in it must raise
DOCUMENTED: dict[tuple[str, str], str] = {
    ("SUBMITTED", "execute"): "RUNNING",
    ("SUBMITTED", "reject"): "REJECTED",
    ("SUBMITTED", "cancel"): "CANCELLED",
    ("RUNNING", "finish"): "COMPLETED_SUCCESSFULLY",
    ("RUNNING", "fail"): "COMPLETED_FAILED",
    ("RUNNING", "reach_walltime"): "COMPLETED_WALLTIME_REACHED",
    ("RUNNING", "kill"): "COMPLETED_KILLED",
    ("RUNNING", "lose_nodes"): "COMPLETED_FAILED",
}
STATES: tuple[State, ...] = ("SUBMITTED", "RUNNING", "REJECTED", "CANCELLED", *get_args(JobState))
STEPS: tuple[Step, ...] = get_args(Step)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("state", STATES)
def test_each_step_goes_as_documented(state: State, step: Step) -> None:
    """A step leads to the one documented state; the table has no other."""
    assert LIFE[state].get(step) == DOCUMENTED.get((state, step))


def test_the_table_has_every_state_and_no_unknown_one() -> None:
    """Each state that a step leads to has its own row."""
    assert set(LIFE) == set(STATES)
    assert {after for steps in LIFE.values() for after in steps.values()} <= set(LIFE)


def test_every_completed_state_can_be_reached_and_is_final() -> None:
    """The protocol's final state is reached, and nothing follows."""
    for state in get_args(JobState):
        assert state in [after for steps in LIFE.values() for after in steps.values()]
        assert LIFE[state] == {}

"""A scheduler's state on the wire: its owner, values without a JSON form, and invalid states."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipistrelle.protocol.events import (
    JobDescription,
    JobSubmitted,
    JobSubmittedData,
    SimulationBegins,
    SimulationBeginsData,
)
from pipistrelle.protocol.messages import Notice
from pipistrelle.schedulers.catalogue.parts import make_order
from pipistrelle.schedulers.catalogue.registry import make_policy
from pipistrelle.schedulers.policy.errors import PolicyFailed
from pipistrelle.schedulers.policy.interfaces import Policy, Stateless
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.runtime.runtime import Runtime
from pipistrelle.schedulers.wire.state import give_state, take_back

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.sampled_from(["float", "a", "b"]), values),
    max_leaves=10,
)


class Remembers(Stateless):
    """A policy that starts nothing, and has any state."""

    name = "remembers"
    order = make_order("fcfs")

    def __init__(self, memory: Any = None) -> None:
        self.memory = memory

    def decide(self, view: View) -> None:
        """Let everybody wait."""

    def state(self) -> Any:
        """Return the stored state, or raise it."""
        if isinstance(self.memory, Exception):
            raise self.memory
        return self.memory

    def restore(self, state: Any, *made: object) -> None:
        """Have that in mind."""
        self.memory = state


def begun(policy: Policy) -> Runtime:
    """Return a scheduler in which a job without a walltime waits behind a running one."""
    runtime = Runtime(policy, "1")
    runtime.answer(Notice(1, 0.0, [SimulationBegins(0.0, SimulationBeginsData(4))]))
    jobs = [JobDescription("w!1", 3, 50.0), JobDescription("w!2", 3), JobDescription("w!3", 1)]
    runtime.answer(Notice(2, 5.0, [JobSubmitted(5.0, JobSubmittedData(job.id, job)) for job in jobs]))
    return runtime


@pytest.mark.parametrize("name", ["conservative", "easy", "fcfs", "maui", "pbs", "titan-bins"])
def test_a_scheduler_takes_its_own_state_back(name: str) -> None:
    """It is all that it knows, in JSON proper, and made alike."""
    runtime = begun(make_policy(name))
    data = give_state(runtime, 2, "mark")
    assert (data.reply_to, data.why) == (2, "")
    json.loads(bytes(data.state), parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    again = Runtime(make_policy(name), "1")
    take_back(again, bytes(data.state), "mark", 2)
    assert give_state(again, 2, "mark") == data


@given(PLAIN)
def test_any_plain_values_round_trip(memory: Any) -> None:
    """Also numbers without a JSON form, and objects that resemble their encoding."""
    data = give_state(begun(Remembers(memory)), 2, "")
    policy = Remembers()
    take_back(Runtime(policy), bytes(data.state), "", 2)
    assert repr(policy.memory) == repr(memory)


@pytest.mark.parametrize(
    ("memory", "longest", "why"),
    [
        (ValueError("cannot tell"), None, "ValueError: cannot tell"),
        (object(), None, "TypeError: Object of type object is not JSON serializable"),
        ("x" * 500, 400, "it has 1,561 bytes, and 400 are allowed"),
    ],
)
def test_a_state_that_cannot_be_given(memory: Any, longest: int | None, why: str) -> None:
    """There is no state then, and the reason is given."""
    data = give_state(begun(Remembers(memory)), 2, "", longest)
    assert bytes(data.state) == b"null"
    assert data.why.startswith(why)


def test_a_part_that_tells_no_state() -> None:
    """The policy announces it in HELLO if it is the policy itself, and with the first state if it is a part of it."""

    class Forgets:
        name = "forgets"
        order = make_order("fcfs")

        def decide(self, view: View) -> None:
            """Let everybody wait."""

    assert "state" not in Runtime(Forgets()).hello().features
    assert "state" in Runtime(Remembers()).hello().features
    assert "cannot save its state" in give_state(begun(Forgets()), 2, "").why


def changed(**change: Any) -> bytes:
    """Return a state with a change."""
    state = json.loads(bytes(give_state(begun(make_policy("easy")), 2, "mark").state))
    return json.dumps({**state, **change}).encode()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (changed(pipistrelle="0.0"), "state of another version of pipistrelle: expected .*, found 0.0"),
        (changed(scheduler="fcfs"), "state of another scheduler: expected easy, found fcfs"),
        (changed(policy="other"), "state of another policy .*: expected mark, found other"),
        (changed(seq=3), "state of another notice: expected 2, found 3"),
        (changed(state={}), "server returned: found KeyError"),
        (changed(state=7), "server returned: found TypeError"),
        (changed(state={"float": []}), "server returned: found IndexError"),
        (b"{}", "returned an invalid state"),
        (b"[1, 2]", "returned an invalid state"),
        (b"nonsense", "returned an invalid state: found Expecting value"),
        (b"[" * 100_000, "returned an invalid state"),
    ],
)
def test_state_of_another_scheduler_is_rejected(text: bytes, says: str) -> None:
    """One line states the expected and the actual value."""
    with pytest.raises(PolicyFailed, match=says) as caught:
        take_back(Runtime(make_policy("easy")), text, "mark", 2)
    assert str(caught.value).isprintable()


def test_state_is_rejected_after_the_start() -> None:
    """A scheduler that has begun keeps its state."""
    runtime = begun(make_policy("easy"))
    text = bytes(give_state(runtime, 2, "").state)
    with pytest.raises(PolicyFailed, match="in the middle of a simulation"):
        take_back(runtime, text, "", 2)
    assert math.inf in [job.walltime for job in runtime.view.waiting] if runtime.view else False

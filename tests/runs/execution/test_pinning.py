"""Server and scheduler on one core: which core, for how long, and what happens if there is none."""

import os

import pytest

from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.connection import WithChild
from pipistrelle.runs.execution.pinning import one_core
from pipistrelle.runs.execution.run import RunOptions, run

pytestmark = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this platform cannot choose cores")


def cores() -> set[int]:
    """Return the cores that this thread may use."""
    return os.sched_getaffinity(0)


@pytest.mark.skipif(hasattr(os, "sched_getaffinity") and len(cores()) < 2, reason="there is one core")
def test_two_runs_have_two_cores_which_they_give_back() -> None:
    """While one run has a core, a second run gets another one."""
    before = cores()

    with one_core() as first:
        if first is None:
            pytest.skip("other runs have all cores")
        assert cores() == {first}
        os.sched_setaffinity(0, before)
        with one_core() as second:
            assert second != first
        assert cores() == before
    assert cores() == before


def test_a_process_with_one_core_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is nothing to choose, or no way to choose."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3})
    with one_core() as core:
        assert core is None
    monkeypatch.delattr(os, "sched_getaffinity")
    with one_core() as core:
        assert core is None


def test_a_core_that_cannot_be_chosen_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container may forbid it."""

    def forbid(pid: int, wanted: set[int]) -> None:
        raise PermissionError(1, "no")

    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    monkeypatch.setattr(os, "sched_setaffinity", forbid)
    with one_core() as core:
        assert core is None


def test_the_core_is_given_back_after_a_run() -> None:
    """The scheduler runs in a process of its own."""
    before = cores()
    assert run(RunSpec(workload=("seven-jobs",)), RunOptions(connection=WithChild(pin=True))).failure is None
    assert cores() == before

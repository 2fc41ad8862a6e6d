"""Both engines follow the same rules of attempts: a changed rule or limit changes both."""

import numpy as np
import pytest

from pipistrelle.kernel import attempts, compiled, kernel, loop, outages
from pipistrelle.platforms.description import homogeneous
from pipistrelle.platforms.failures import checkpointing
from pipistrelle.runs.description.reliability import load_reliability
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.schedulers.plan.machine_code import source_of
from pipistrelle.server.attempts import accounting, progress, segment
from pipistrelle.server.attempts import attempts as served
from pipistrelle.server.engine import stalls
from pipistrelle.server.errors import Stalled
from pipistrelle.server.outages import failures
from pipistrelle.server.setup.setup import Setup
from pipistrelle.traces.workload import Workload

SHARED = {
    accounting: {
        *("CHECKED_AT", "NO_LIMIT", "extended_walltime", "fruitless_after", "may_try_again", "next_walltime"),
        *("node_time", "read_first", "split_work", "time_to_save", "work_kept", "work_left", "worked_until"),
        *("give_up_fruitless", "give_up_hopeless"),
    },
    checkpointing: {"done_at", "dumps_until_done", "phase_at"},
    stalls: {"MAX_FRUITLESS"},
}


@pytest.mark.parametrize("home", SHARED, ids=lambda module: module.__name__)
def test_both_engines_use_the_same_rules_and_limits(home) -> None:
    """Whatever the kernel takes from a module of rules is the object that the reference engine takes."""
    for engine in ((attempts, kernel, loop, outages), (served, progress, segment, failures)):
        taken = {name: vars(module)[name] for module in engine for name in SHARED[home] & vars(module).keys()}
        assert taken == {name: getattr(home, name) for name in SHARED[home] & taken.keys()}
        missing = SHARED[home] - taken.keys()
        assert missing <= {"split_work"}, f"{missing} stand elsewhere"  # the reference engine's is in attempt.py


@pytest.mark.parametrize("home", SHARED, ids=lambda module: module.__name__)
def test_a_changed_rule_is_compiled_anew(home) -> None:
    """The files of the rules are among those that the kept machine code depends on."""
    assert source_of(home) in compiled._FILES


@pytest.mark.parametrize(("expected_attempts", "times"), [(100_000, "10"), (0, "10,000")])
def test_giving_up_says_the_same_in_both_engines(compare, expected_attempts: int, times: str) -> None:
    """A job that is hopeless, or has lost too many attempts, is named with the same numbers."""
    spec = RunSpec(failures=("exponential,mtbf=1h",), repair="1min", expected_attempts=expected_attempts)
    platform = homogeneous(30, "m")
    jobs = Workload(
        name="long",
        source="test",
        ids=["short", "long"],
        submit=np.array([0.0, 5.0]),
        size=np.array([1, 25]),
        walltime=np.array([np.inf, np.inf]),
        runtime=np.array([10.0, 1e6]),
    )
    setup = Setup.of(platform, jobs, reliability=load_reliability(spec, platform, jobs))

    assert compare(setup, spec) is None
    with pytest.raises(Stalled, match=f"w0!long has lost its nodes {times} times, and has saved none of its work"):
        kernel.simulate(setup, spec)

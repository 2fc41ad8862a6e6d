"""The plan of units by access: places of jobs that it remembers."""

from collections.abc import Callable
from math import inf

from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipistrelle.protocol.base.state import from_json, to_json
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.plan.access import AccessPlan, Restriction
from pipistrelle.schedulers.plan.pickers import last_available
from pipistrelle.schedulers.plan.slices import Place
from pipistrelle.schedulers.policy.ends_and_shadow import end_of
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.windows import Closure

UNITS = 6
Decision = tuple[float, int | None, bool, int | None, Closure | None, int]
#: time that passes (s), job to start if it fits, whether a job ends, unit out of service, closure, job to get a place
decisions: st.SearchStrategy[list[Decision]] = st.lists(
    st.tuples(
        st.sampled_from([0.0, 1.0, 2.0]),
        st.none() | st.integers(1, 5),
        st.booleans(),
        st.sampled_from([None, None, None, 2]),
        st.sampled_from([None, None, Closure(0.0, 9.0, 0b11)]),
        st.sampled_from([0, 0, 0, 1]),
    ),
    max_size=14,
)


def places(
    jobs: list[SchedulerJob], decided: list[Decision], *, repeats: bool = False, restored: bool = False
) -> list[Place | None]:
    """Return all places that a plan finds; if it is ``restored``, by a plan made anew for each decision."""
    plan, now = AccessPlan(UNITS, 0.0, last_available, repeats=repeats), 0.0
    found: list[Place | None] = []
    runs: dict[int, SchedulerJob] = {}
    for passes, starts, ends, out, closure, reserves in decided:
        now += passes
        if ends and runs:
            ended = next(iter(runs))
            del runs[ended]
            plan.ended(ended)
        plan.follow(now, NodeSet.EMPTY if out is None else NodeSet.of([out]))
        if restored:
            state, plan = plan.state(), AccessPlan(UNITS, 0.0, last_available)
            plan.restore(from_json(to_json(state)))
        plan.begin([] if closure is None else [Restriction(closure, frozenset())], 9)
        if reserves not in runs:
            found.append(plan.reserve(0, jobs[reserves], jobs[reserves].walltime))
        if starts is not None and starts not in runs:
            job = jobs[starts]
            units = plan.units_now(0, job, job.walltime)
            if units:
                runs[starts] = job
                plan.started(job, units, end_of(now, job.walltime))
    return found


# A start alone moves the place of job 0: it prefers the units that are busy now.
MOVED = [
    (0.0, 1, False, None, None, 1),
    (0.0, 2, False, None, None, 1),
    (0.0, 3, True, None, None, 0),
    (0.0, None, False, None, None, 0),
]


@settings(max_examples=300)
@given(
    sizes=st.lists(st.tuples(st.integers(1, UNITS), st.sampled_from([1.0, 3.0, 8.0, inf])), min_size=6, max_size=6),
    decided=decisions,
)
@example(sizes=[(4, 1.0), (2, 8.0), (4, 8.0), (1, 1.0), (1, 1.0), (1, 1.0)], decided=MOVED)
def test_places_are_those_of_a_new_search(
    waiting_job: Callable[..., SchedulerJob],
    sizes: list[tuple[int, float]],
    decided: list[Decision],
) -> None:
    """Whether a place is remembered, and whether units left and returned before, changes nothing."""
    jobs = [waiting_job(number, size=size, walltime=walltime) for number, (size, walltime) in enumerate(sizes)]

    found = places(jobs, decided)
    assert places(jobs, decided, repeats=True) == found
    assert places(jobs, decided, restored=True) == found

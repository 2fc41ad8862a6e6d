"""GPUs that tests count on nodes: they order nodes of equal weight for backfill's expected starts."""

import json
from typing import Any

from msgspec.structs import replace
from tests.schedulers.slurm.conftest import Queue, shared

from pipistrelle.schedulers.slurm.backfill.backfill_pass import backfill_pass
from pipistrelle.schedulers.slurm.config.settings import SlurmConfig
from pipistrelle.schedulers.slurm.passes.controller import Controller
from pipistrelle.schedulers.slurm.passes.main_pass import main_pass

LONG = 36000.0
SHORT = 600.0


def machine() -> SlurmConfig:
    """Return a cluster of three nodes with two GPUs each."""
    config = shared(3)
    return replace(config, nodes=tuple(replace(one, gres={"gpu": 2}) for one in config.nodes))


def filled(**waiting: Any) -> Queue:
    """Return a queue in which jobs fill the three nodes and hold both GPUs of n01; further jobs wait."""
    queue = Queue(machine())
    queue.add(nodes=1, tasks=4, gres={"gpu": 2}, time_limit=SHORT)
    for _ in range(2):
        queue.add(nodes=1, tasks=4, time_limit=SHORT)
    main_pass(queue.controller, 1, full=True)
    assert len(queue.controller.running) == 3
    queue.add(nodes=1, tasks=1, gres={"gpu": 1}, time_limit=SHORT, **waiting)
    return queue


def expected(queue: Queue, now: int) -> dict[str, list[str]]:
    """Run a backfill pass and return {job: nodes of its expected start}."""
    result = backfill_pass(queue.controller, now)
    return {one.job.ids[0]: queue.controller.machine.names_of(one.nodes) for one in result.outcomes}


def test_counts_of_one_pass_order_nodes_in_the_next() -> None:
    """A job with GPUs and a short one reserve nodes; in the next pass a job without GPUs prefers counted nodes."""
    queue = filled()
    queue.add(nodes=1, tasks=1, time_limit=SHORT)  # this submission forgets the counts of earlier ones
    first = expected(queue, 2)
    assert first == {"4": ["n01"], "5": ["n02"]}
    assert queue.controller.selector.state() == [[1, "7"]]
    assert expected(queue, 32) == first


def test_a_job_without_gpus_prefers_nodes_with_more_gpus_counted() -> None:
    """n03 has a count of 2, so the expected start is there and not on n01."""
    queue = filled(hold=True)
    queue.add(nodes=1, tasks=1, time_limit=SHORT)
    controller = queue.controller
    controller.selector.restore([[2, "4"], [1, "2"]])
    assert expected(queue, 2)["5"] == ["n03"]


def test_tests_of_the_main_loop_forget_counts_of_the_jobs_nodes() -> None:
    """A job that may use n02 and n03 forgets their counts; n01 keeps its count."""
    queue = filled(hold=True)
    queue.add(nodes=1, tasks=1, excluded=("n01",), time_limit=LONG)
    queue.controller.selector.restore([[2, "7"]])
    main_pass(queue.controller, 3, full=True)
    assert queue.controller.selector.state() == [[2, "1"]]


def test_a_job_with_gpus_that_cannot_start_is_counted_on_all_nodes() -> None:
    """The main loop then tests whether the job could ever run, and this test counts GPUs on busy nodes, too."""
    queue = filled()
    main_pass(queue.controller, 3, full=True)
    assert queue.controller.selector.state() == [[1, "7"]]


def test_counts_survive_a_snapshot() -> None:
    """A restored controller expects the same start."""
    queue = filled(hold=True)
    queue.add(nodes=1, tasks=1, time_limit=SHORT)
    queue.controller.selector.restore([[2, "4"]])
    again = Queue(machine())
    again.controller = Controller(machine())
    again.controller.restore(json.loads(json.dumps(queue.controller.state())))
    assert expected(again, 2) == expected(queue, 2)

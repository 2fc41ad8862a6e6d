"""`earliest_start` is what EASY backfilling reserves."""

from pathlib import Path

import pytest

import pipistrelle as pp

EXAMPLES = Path(__file__).resolve().parent.parent.parent.parent / "docs" / "examples"
MACHINES = {
    "units": (None, None),
    "pools": (EXAMPLES / "pools" / "zeus.toml", EXAMPLES / "pools" / "shapes.json"),
    "shared nodes": (EXAMPLES / "shared" / "cluster.toml", EXAMPLES / "shared" / "jobs.sacct"),
}


class Asking(pp.Scheduler):
    """EASY backfilling, which asks after each decision when the first job fits."""

    def __init__(self) -> None:
        self.easy = pp.make_scheduler("easy")
        self.asked: list[tuple[float, float]] = []

    def decide(self, view: pp.View) -> None:
        """Decide as EASY, and keep the reservation of the first job with the time that is asked for."""
        self.easy.decide(view)
        first = view.waiting.first
        if first is None:
            return
        assert isinstance(self.easy, pp.ComposedPolicy)
        reserved = self.easy.reservation(first)
        if reserved is not None:
            self.asked.append((pp.earliest_start(view, first), reserved))


@pytest.mark.parametrize("machine", MACHINES)
def test_the_earliest_start_is_the_reservation_of_easy(machine: str) -> None:
    """On each kind of machine, for each first job that waits, also beside the jobs that pass it."""
    platform, workload = MACHINES[machine]
    if platform is None:
        pp.run(pp.generate_workload(200, 16, seed=4, load=1.2), pp.homogeneous(16, "m"), policy := Asking())
    else:
        pp.run(workload, platform, policy := Asking())

    assert policy.asked
    assert [asked for asked, _ in policy.asked] == [reserved for _, reserved in policy.asked]

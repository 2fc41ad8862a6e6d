"""Our decisions against recordings of the real slurmctld, where these are present."""

from pathlib import Path

import pytest

from pipistrelle.runs.recordings.check import check_recording

#: {recording: (least share of equal starts, largest error of a mean wait) of a whole run with modelled delays}
MODELLED = {"a": (0.8, 0.015), "b": (0.8, 0.015), "c": (0.8, 0.015), "d": (0.5, 10.0), "f": (0.8, 0.015)}
LEAST = {
    "main passes": 0.99,
    "backfill outcomes": 0.995,
    "priorities": 0.995,
    "starts of a pass": 0.99,
    "starts of a run, delays recorded": 0.95,
}


@pytest.mark.filterwarnings("ignore:.*nothing can start them")
@pytest.mark.parametrize("name", [pytest.param(one, marks=() if one == "d" else pytest.mark.slow) for one in MODELLED])
def test_decisions_are_those_of_slurmctld(name: str, slurm22_dir: Path) -> None:
    """Passes, priorities and nodes are equal from the recorded state; whole runs start jobs at the same second.

    Recording d depends on 0.02 s in the main loop, so a run with modelled delays takes another course.
    """
    found = check_recording(slurm22_dir / name)
    shares = {one.what: one.equal / one.compared for one in found.agreements}
    assert {what: share for what, share in shares.items() if share < LEAST.get(what, 0)} == {}
    recorded, modelled = found.runs
    assert recorded.largest_error <= 0.015
    least, error = MODELLED[name]
    assert modelled.same >= least * len(found.starts)
    assert modelled.largest_error <= error
    assert bool(modelled.cause) == (modelled.same < len(found.starts))

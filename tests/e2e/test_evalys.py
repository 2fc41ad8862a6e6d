"""evalys, as it is on the package index, loads and plots our outputs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.server.batsim.outputs import BatsimOutputs
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.outputs.metrics import Metrics

#: what every script for evalys begins with; the rest follows
HEAD = """
import sys
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
"""
JOBS = """
from evalys.jobset import JobSet
jobs = JobSet.from_csv(sys.argv[1])
print(len(jobs.df), jobs.res_bounds, round(jobs.mean_utilisation(), 6))
print(int(jobs.utilisation.load.max()), int(jobs.queue.load.max()), jobs.df.finish_time.max())
jobs.plot(with_details=True)
plt.savefig("plot.png")
jobs.gantt()
plt.savefig("gantt.png")
"""
STATES = """
from evalys.mstates import MachineStatesChanges
from evalys.visu.legacy import plot_mstates
states = MachineStatesChanges(sys.argv[1])
print(sorted(set(states.df.total)))
plot_mstates(states.df, plt.gca())
plt.savefig("states.png")
"""
PSTATES = """
from evalys.pstates import PowerStatesChanges
changes = PowerStatesChanges(sys.argv[1])
print(changes.res_bounds, sorted({int(pstate) for pstate in changes.pseudo_jobs.pstate}))
"""


@pytest.fixture
def evalys(shell: Any, clients: Any) -> Callable[[str, Path | str], list[str]]:
    """Return a function that runs a script with evalys on a file and returns the lines that it printed."""

    def run(script: str, path: Path | str) -> list[str]:
        file = shell.write("script.py", HEAD + script)
        # Its own warnings are not ours to mend.
        outcome = shell.spawn(clients.python, "-W", "ignore", file, path).finish()
        assert outcome.code == 0, outcome
        return list(outcome.out.splitlines())

    return run


@pytest.mark.slow
def test_it_plots_a_run(shell: Any, evalys: Callable[..., list[str]]) -> None:
    """Jobs, their Gantt chart and machine states of `pipistrelle run`."""
    shell.run("run", "-p", "tiny", "-w", shell.small(), "--in-process", "--out", "out", "--scheduler", "fcfs").ok()
    # Two jobs of 2 units for 100 s and 50 s, one of 4 for 10 s, one of 1 for 5 s: 345 unit-seconds.
    assert evalys(JOBS, "out/out_jobs.csv")[1] == "4 4 505.0"
    assert evalys(STATES, "out/out_machine_states.csv") == ["[4]"]
    assert all((shell.folder / f"{name}.png").stat().st_size > 1000 for name in ("plot", "gantt", "states"))


def test_it_reads_energy_and_pstates(evalys: Callable[..., list[str]], tmp_path: Path) -> None:
    """Batsim's files of a run with a rejected job, and machines that fall asleep."""

    class Meter:
        """Three hosts in power state 0."""

        def energy(self, now: float) -> float:
            """Return joules."""
            return 30 * now

        def lowest_power(self) -> float:
            """Return watts."""
            return 30.0

        def pstates(self) -> list[int]:
            """Return power states."""
            return [0, 0, 0]

    outputs, metrics = BatsimOutputs(f"{tmp_path}/e"), Metrics()
    units, sleepy = NodeSet.parse("0"), NodeSet.parse("1-2")
    job = Job("w0!1", 1.0, 1, 9.0, 5.0, "p", "COMPLETED_SUCCESSFULLY", 1.0, 6.0, units)
    large = Job("w0!2", 1.0, 9, 9.0, 5.0, "p", "REJECTED")
    for observer in (outputs.metered(Meter()), *outputs.observers(), metrics):
        observer.begins(0.0, 3)
        observer.submitted(1.0, job)
        observer.ended(1.0, large)
        observer.started(1.0, job)
        observer.departed(2.0, sleepy, False)
        observer.switched(2.0, sleepy, -2)
        observer.ended(6.0, job)
        observer.arrived(8.1, sleepy, True)
        observer.switched(8.1, sleepy, 13)
        observer.ends(8.1, "completed", "")
    outputs.after(metrics.summary())
    assert evalys(PSTATES, f"{tmp_path}/e_pstate_changes.csv") == ["(0, 3) [-2, 0, 13]"]
    assert evalys(STATES, f"{tmp_path}/e_machine_states.csv") == ["[3]"]
    assert evalys(JOBS, f"{tmp_path}/e_jobs.csv")[0].startswith("2 0 ")

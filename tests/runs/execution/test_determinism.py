"""Equal inputs give equal bytes in every output file."""

import os
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from pipistrelle.protocol.fields import package_version
from pipistrelle.protocol.messages import HelloData, Notice, Reply, Welcome, WelcomeData
from pipistrelle.protocol.session import SchedulerSession, ServerSession, negotiate
from pipistrelle.runs.execution.run import RunOptions, run_in_process
from pipistrelle.runs.inputs.named import platform_for
from pipistrelle.schedulers.catalogue.registry import make_policy
from pipistrelle.schedulers.orders.fixed import Fcfs
from pipistrelle.schedulers.policy.order import Order
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.runtime.runtime import Runtime
from pipistrelle.server.errors import Stalled
from pipistrelle.server.setup.setup import Setup
from pipistrelle.server.simulation.simulate import simulate
from pipistrelle.traces.workload import Workload

Make = Callable[[], Workload]
POLICIES = ("fcfs", "easy", "easy-sjbf", "filler")
RUN = """
import sys
from pathlib import Path
from pipistrelle.runs.execution.run import RunOptions, run_in_process
from pipistrelle.traces.generator import generate
workload = generate(jobs=300, units=32, seed=5, load=0.95, name="small")
run_in_process(workload, sys.argv[2], options=RunOptions(out=Path(sys.argv[1])))
"""


class Framed:
    """A transport that turns every message into a frame and back, as a socket does, in one process."""

    apart = True

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._server, self._scheduler = ServerSession(), SchedulerSession()
        self._frame = b""

    def greet(self, run_id: str, server: str) -> tuple[HelloData, WelcomeData]:
        """Agree, frame by frame, up to the empty reply to WELCOME."""
        hello = self._server.receive_hello(self._scheduler.send_hello(self._runtime.hello())).data
        answer = self._scheduler.receive_greeting(self._server.greet(negotiate(hello, run_id=run_id, server=server)))
        assert isinstance(answer, Welcome)
        self._runtime.welcome(answer.data)
        self._server.receive_reply(self._scheduler.send_reply(Reply(0, 0.0)))
        return hello, answer.data

    def send(self, notice: Notice) -> None:
        """Keep the notice's frame."""
        self._frame = self._server.send_notice(notice)

    def receive(self) -> Reply:
        """Let the scheduler read the frame, and read its reply."""
        notice = self._scheduler.receive_notice(self._frame)
        assert isinstance(notice, Notice)
        return self._server.receive_reply(self._scheduler.send_reply(self._runtime.answer(notice)))

    def farewell(self, notice: Notice) -> None:
        """Let the scheduler read the last frame."""
        last = self._scheduler.receive_notice(self._server.send_notice(notice))
        assert isinstance(last, Notice)
        self._runtime.answer(last)

    def close(self) -> None:
        """Do nothing."""


def digests(folder: Path) -> dict[str, str]:
    """Return {file name: digest of its bytes}."""
    found = {path.name: sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}
    assert len(found) == 7
    return found


@pytest.mark.parametrize("policy", POLICIES)
def test_ten_runs_give_the_same_bytes(tmp_path: Path, small_workload: Make, policy: str) -> None:
    """Every file of ten repeated runs is the same, with the workload rebuilt each time."""
    logs = []
    for number in range(10):
        folder = tmp_path / f"a name that differs {number}"
        run_in_process(small_workload(), policy, options=RunOptions(out=folder))
        logs.append(digests(folder))

    assert all(log == logs[0] for log in logs)


@pytest.mark.parametrize("policy", POLICIES)
def test_frames_change_nothing(tmp_path: Path, small_workload: Make, policy: str) -> None:
    """A run whose messages all pass through JSON writes the same bytes, and both sessions end closed."""
    run_in_process(small_workload(), policy, options=RunOptions(out=tmp_path / "direct"))
    (tmp_path / "framed").mkdir()
    workload = small_workload()
    transport = Framed(Runtime(make_policy(policy), package_version()))
    setup = Setup.of(platform_for(workload), workload)
    result = simulate(setup, transport, clock=lambda: 0.0, out=tmp_path / "framed")

    assert result.failure is None
    assert digests(tmp_path / "framed") == digests(tmp_path / "direct")
    assert (transport._server.state, transport._scheduler.state) == ("CLOSED", "CLOSED")


def test_policies_differ(tmp_path: Path, small_workload: Make) -> None:
    """The workload of these tests is one on which each policy does something else."""
    for policy in POLICIES:
        run_in_process(small_workload(), policy, options=RunOptions(out=tmp_path / policy))

    assert len({digests(tmp_path / policy)["out_jobs.csv"] for policy in POLICIES}) == len(POLICIES)


def test_a_policy_object_that_is_used_again_gives_the_same_bytes(tmp_path: Path, small_workload: Make) -> None:
    """No file of an earlier run remains."""
    policy = make_policy("easy-sjbf")
    run_in_process("demo", policy)
    for name in ("again", "once more"):
        run_in_process(small_workload(), policy, options=RunOptions(out=tmp_path / name))
    run_in_process(small_workload(), "easy-sjbf", options=RunOptions(out=tmp_path / "fresh"))

    assert digests(tmp_path / "again") == digests(tmp_path / "once more") == digests(tmp_path / "fresh")


def test_an_older_run_in_the_folder_leaves_no_trace(tmp_path: Path, small_workload: Make) -> None:
    """Files are rewritten, also over longer ones."""
    run_in_process("demo", "easy", options=RunOptions(out=tmp_path / "used"))
    run_in_process(small_workload(), "easy", options=RunOptions(out=tmp_path / "used"))
    run_in_process(small_workload(), "easy", options=RunOptions(out=tmp_path / "fresh"))

    assert digests(tmp_path / "used") == digests(tmp_path / "fresh")


@pytest.mark.parametrize("policy", ["easy", "easy-sjbf"])
def test_neither_hash_seed_nor_locale_nor_time_zone_matters(tmp_path: Path, small_workload: Make, policy: str) -> None:
    """Other processes with other settings write the same bytes as this one."""
    run_in_process(small_workload(), policy, options=RunOptions(out=tmp_path / "here"))
    settings = [
        {"PYTHONHASHSEED": "0", "LC_ALL": "C", "TZ": "UTC"},
        {"PYTHONHASHSEED": "4711", "LC_ALL": "C.UTF-8", "TZ": "Asia/Kathmandu", "PYTHONUTF8": "0"},
    ]
    for number, change in enumerate(settings):
        folder = tmp_path / f"there {number}"
        environment = {**os.environ, **change}
        subprocess.run([sys.executable, "-c", RUN, folder, policy], env=environment, check=True)
        assert digests(folder) == digests(tmp_path / "here")


def test_a_failed_run_is_repeatable_too(tmp_path: Path, small_workload: Make) -> None:
    """The same holds for a run that ends early: here a scheduler that gives up after 50 jobs."""

    class Tired:
        name = "tired"
        order: Order = Fcfs()

        def __init__(self) -> None:
            self._left = 50

        def decide(self, view: View) -> None:
            for job in view.waiting:
                if self._left and job.size <= view.free.count:
                    self._left -= 1
                    view.start(job)

    for name in ("one", "two"):
        with pytest.raises(Stalled):
            run_in_process(small_workload(), Tired(), options=RunOptions(out=tmp_path / name))

    assert digests(tmp_path / "one") == digests(tmp_path / "two")

"""Runs resumed from a snapshot under another policy: its first notices, and policies that cannot take over."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.protocol.decisions import CallMeLater, CallMeLaterData
from pipistrelle.protocol.events import JobCompleted, JobStarted, JobSubmitted, NoMoreJobs, SimulationBegins
from pipistrelle.protocol.messages import HelloData, Notice, Reply
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.run import RunOptions, run
from pipistrelle.runs.sessions.resume import read_run, resume, run_kept, take_over
from pipistrelle.runs.sessions.snapshot import Every, Keeping, snapshots_in
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.runtime.runtime import Runtime
from pipistrelle.server.transport.in_process import InProcessTransport

FAILING = RunSpec(
    failures=("exponential,mtbf=200d",),
    repair="6h",
    max_attempts=3,
    maintenance=("@1d +8h 0-127 daily announced 12h",),
    until="36h",
)
PBS = replace(FAILING, order="pbs", formula="fairshare_factor")


def kept(spec: RunSpec, folder: Path, connection: Any = None) -> list[Path]:
    """Carry out a run, and return its snapshots."""
    folder.mkdir()
    options = RunOptions(connection=connection, out=folder)
    result = run_kept(spec, options, Keeping(every=Every(simulated=36000.0), most=9, leave=True))
    assert result.failure is None
    return snapshots_in(folder)


def goes_on(path: Path, out: Path, connection: Any = None, **policy: Any) -> RunSpec:
    """Resume a run from a snapshot under a policy, and return the outputs of its folder."""
    before = read_run(path, elsewhere=True)
    spec = before.spec
    other = replace(spec.without_policy(), **policy) if "scheduler" in policy else replace(spec, **policy)
    take_over(other, before, RunOptions(connection=connection, out=out), Keeping(leave=True))
    return msgspec.json.decode((out / "out_command.json").read_bytes(), type=RunSpec)


def rows(folder: Path) -> dict[str, bytes]:
    """Return the outputs that record events."""
    return {path.name: path.read_bytes() for path in folder.glob("out_*.csv")}


@pytest.mark.parametrize("spec", [RunSpec(until="36h"), FAILING, PBS], ids=["easy", "failures", "fairshare"])
def test_the_same_policy_decides_the_same(spec: RunSpec, tmp_path: Path) -> None:
    """A policy without plans gets what it needs: queued and running jobs, nodes down, past usage."""
    snapshots = kept(spec, tmp_path / "whole")
    whole = rows(tmp_path / "whole")
    for path in [snapshots[1], snapshots[-2]]:
        goes_on(path, tmp_path / path.stem, scheduler="easy", order=spec.order, formula=spec.formula)
        found = rows(tmp_path / path.stem)
        for one in (found, whole):  # it has a version in it, and the name of the scheduler
            one.pop("out_schedule.csv", None)
        assert found == whole


def test_another_policy_takes_over(tmp_path: Path) -> None:
    """Earlier decisions stay, later ones are the new policy's; folder and command name their origin."""
    whole = tmp_path / "whole"
    path = kept(RunSpec(until="36h"), whole)[2]
    before = {one.name: one.read_bytes() for one in whole.iterdir()}
    said = [
        goes_on(path, tmp_path / "fcfs", scheduler="fcfs"),
        goes_on(path, tmp_path / "sjf", order="sjf"),
        goes_on(path, tmp_path / "maui", scheduler="maui", poll="60s"),
        goes_on(path, tmp_path / "parts", reliability="auto", blocking=0.2),
        goes_on(path, tmp_path / "conservative", backfill="conservative"),
    ]
    assert {one.name: one.read_bytes() for one in whole.iterdir()} == before
    origin = said[0].resumed
    assert origin is not None
    assert (origin.folder, origin.snapshot, origin.scheduler) == (str(whole), path.name, "easy")
    assert [(one.scheduler, one.order) for one in said[:2]] == [("fcfs", None), ("easy", "sjf")]
    starts = {}
    for one in tmp_path.iterdir():
        lines = (one / "out_decisions.csv").read_text().splitlines()[1:]
        starts[one.name] = lines
        taken = [line for line in lines if float(line.split(",")[0]) < origin.now]
        assert taken == [line for line in starts.get("whole", taken) if float(line.split(",")[0]) < origin.now]
    assert len({tuple(lines) for lines in starts.values()}) == 6
    config = msgspec.json.decode((tmp_path / "sjf" / "out_config.json").read_bytes())
    assert config["scheduler"]["name"] == "easy+order=sjf"
    # The run can be saved and resumed again, also under a third policy.
    snapshot = snapshots_in(tmp_path / "sjf")[-1]
    resume(read_run(snapshot), RunOptions(out=tmp_path / "same"), Keeping())
    assert rows(tmp_path / "same") == rows(tmp_path / "sjf")
    again = goes_on(snapshot, tmp_path / "third", scheduler="fcfs").resumed
    assert again is not None
    assert again.folder == str(tmp_path / "sjf")
    with pytest.raises(PipistrelleError, match="continued another run's snapshot"):
        run(said[0])


@dataclass
class Listening:
    """A scheduler that starts nothing and records its notices; ``features`` are those it requests."""

    features: tuple[str, ...]
    early: bool = False

    def __post_init__(self) -> None:
        """Begin with nothing."""
        self.told: list[Notice] = []

    def hello(self) -> HelloData:
        """Announce the features."""
        return HelloData("listener", features=self.features)

    def welcome(self, data: Any) -> None:
        """Take it."""

    def answer(self, notice: Notice) -> Reply:
        """Do nothing, or ask for a call too early."""
        self.told.append(notice)
        call = CallMeLater(notice.now, CallMeLaterData(notice.now + 1.0))
        return Reply(notice.seq, notice.now, [call] if self.early else [])

    def state(self) -> None:
        """Keep nothing."""

    def restore(self, state: None) -> None:
        """Do nothing."""

    def open(self, spec: Any, setup: Any, interrupted: Callable[[], bool]) -> Any:
        """Be its own connection."""
        from contextlib import nullcontext

        return nullcontext(InProcessTransport(self, interrupted))


def test_notices_to_the_new_scheduler(tmp_path: Path) -> None:
    """First the machine, then all of the past in its order, with the jobs that run and wait at their times."""
    path = kept(RunSpec(until="36h"), tmp_path / "whole")[2]
    listener = Listening(("takeover", "labels"))
    goes_on_strictly(path, tmp_path / "out", listener)
    begins, past = listener.told[:2]
    assert [type(event) for event in begins.events] == [SimulationBegins]
    assert (begins.seq, past.seq) == (1, 2)
    times = [event.timestamp for event in past.events]
    assert times == sorted(times)
    assert times[-1] <= past.now
    kinds = {kind: [event for event in past.events if type(event) is kind] for kind in (JobSubmitted, JobStarted)}
    ended = {event.data.job_id for event in past.events if isinstance(event, JobCompleted)}
    started = {event.data.job_id: event for event in kinds[JobStarted]}
    lines = (path.parent / "out_jobs.csv").read_text().splitlines()
    assert len(ended) > 100
    assert {f"w0!{line.split(',')[0]}" for line in lines[1 : len(ended) + 1]} == ended
    assert len(started) > len(ended)
    assert {event.data.job_id for event in kinds[JobSubmitted]} > started.keys()
    assert NoMoreJobs not in {type(event) for event in past.events}


def goes_on_strictly(path: Path, out: Path, listener: Listening) -> None:
    """Let a scheduler of the test's own take a run over; raise what ends it."""
    before = read_run(path, elsewhere=True)
    result = take_over(before.spec, before, RunOptions(connection=listener, out=out), Keeping())
    if result.failure is not None:
        raise result.failure


@pytest.mark.parametrize(
    ("listener", "says"),
    [
        (Listening(("failures",)), "'listener' cannot take a run over: it does not support.*found failures"),
        (Listening(("takeover",)), "nodes fail in this run, and only one of the two schedulers"),
        (Listening(("takeover", "failures"), early=True), "its reply to notice 1 has decisions"),
        (Listening(("takeover", "failures", "preemption")), "only one of the two schedulers may preempt"),
        (Listening(("takeover", "failures", "recorded")), "it needs the log's recorded times, and this run's earlier"),
    ],
    ids=["no feature", "not told of failures", "decides too early", "preempts", "recorded"],
)
def test_schedulers_that_cannot_take_over(listener: Listening, says: str, tmp_path: Path) -> None:
    """One message says which scheduler and why; nothing of the run stays in the new folder."""
    path = kept(replace(FAILING, until="13h"), tmp_path / "whole")[0]
    with pytest.raises(PipistrelleError, match=says):
        goes_on_strictly(path, tmp_path / "out", listener)
    assert list((tmp_path / "out").iterdir()) == []


def test_runs_that_cannot_be_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same folder, another workload, a snapshot of another version."""
    path = kept(RunSpec(until="13h"), tmp_path / "whole")[0]
    with pytest.raises(PipistrelleError, match="need a folder of their own"):
        goes_on(path, tmp_path / "whole", scheduler="fcfs")
    with pytest.raises(PipistrelleError, match=r"state of another run \(platform, workload"):
        goes_on(path, tmp_path / "out", scheduler="fcfs", workload=("seven-jobs",))
    monkeypatch.setattr("pipistrelle.runs.execution.pause.package_version", lambda: "9.9")
    with pytest.raises(PipistrelleError, match=r"state of another version of pipistrelle: expected 9\.9"):
        goes_on(path, tmp_path / "out", scheduler="fcfs")


def test_a_past_that_makes_no_sense_is_refused() -> None:
    """A bundled scheduler's error names the notice: a start of an unknown job, units held twice."""
    from pipistrelle.protocol import codec
    from pipistrelle.schedulers.catalogue.registry import make_policy

    def told(*events: dict[str, Any]) -> View:
        runtime = Runtime(make_policy("easy"))
        for seq, some in (
            (1, ({"timestamp": 0.0, "type": "SIMULATION_BEGINS", "data": {"nb_resources": 4}},)),
            (2, events),
        ):
            notice = codec.decode_notice(msgspec.json.encode({"seq": seq, "now": 0.0, "events": some}))
            assert isinstance(notice, Notice)
            runtime.answer(notice)
        assert runtime.view is not None
        return runtime.view

    def job(name: str) -> dict[str, Any]:
        return {"timestamp": 0.0, "type": "JOB_SUBMITTED", "data": {"job_id": name, "job": {"id": name, "res": 2}}}

    def start(name: str, alloc: str) -> dict[str, Any]:
        return {"timestamp": 0.0, "type": "JOB_STARTED", "data": {"job_id": name, "alloc": alloc}}

    def going(name: str, alloc: str) -> dict[str, Any]:
        event = start(name, alloc)
        return {**event, "data": {**event["data"], "preempted": True}}

    told(job("a!1"), job("a!2"), start("a!1", "0-1"), start("a!2", "2-3"))
    assert told(job("a!1"), job("a!2"), start("a!1", "0-1"), going("a!2", "2-3")).going == {"a!2"}
    with pytest.raises(PipistrelleError, match=r"notice 2: .* a job that does not wait: found a!2"):
        told(job("a!1"), start("a!2", "0-1"))
    with pytest.raises(PipistrelleError, match="a!2 runs on units that are not free"):
        told(job("a!1"), job("a!2"), start("a!1", "0-1"), start("a!2", "1-2"))
    with pytest.raises(PipistrelleError, match="the past makes no sense"):
        told(job("a!1"), start("a!1", "0-x"))

"""A whole run in Batsim's dialect, in process: a script in place of a scheduler, real frames in both directions."""

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pipistrelle.platforms.simgrid.platform_file import SimGridPlatform, parse_simgrid
from pipistrelle.protocol.batsim import codec as batsim_codec
from pipistrelle.protocol.messages import HelloData, Notice, Reply, WelcomeData
from pipistrelle.server.batsim.outputs import BatsimOutputs
from pipistrelle.server.setup.setup import BatsimOptions, Setup
from pipistrelle.server.simulation.simulate import Result, simulate
from pipistrelle.traces.batsim.events import read_events
from pipistrelle.traces.batsim.workload import parse_batsim

#: (type, data, time or None for the notice's)
Decision = tuple[str, dict[str, Any], float | None]
#: {time: decisions at the first notice of that time}, or a scheduler: its decisions on a notice
Answers = Mapping[float, Sequence[Decision]] | Callable[[dict[str, Any]], list[Decision]]


class Say:
    """Decisions as they stand on the wire; ``at`` dates them, else they have the notice's time."""

    @staticmethod
    def any(kind: str, at: float | None = None, **data: Any) -> Decision:
        """Return a decision of whatever type."""
        return kind, data, at

    def execute(self, job_id: str, alloc: str, at: float | None = None, **more: Any) -> Decision:
        """Start a job."""
        return self.any("EXECUTE_JOB", at, job_id=job_id, alloc=alloc, **more)

    def reject(self, job_id: str, at: float | None = None) -> Decision:
        """Refuse a job."""
        return self.any("REJECT_JOB", at, job_id=job_id)

    def kill(self, *job_ids: str, at: float | None = None) -> Decision:
        """End jobs."""
        return self.any("KILL_JOB", at, job_ids=list(job_ids))

    def call(self, time: float, at: float | None = None) -> Decision:
        """Request a call."""
        return self.any("CALL_ME_LATER", at, timestamp=time)

    def notify(self, what: str, at: float | None = None) -> Decision:
        """Notify the server."""
        return self.any("NOTIFY", at, type=what)

    def register_profile(self, workload: str, name: str, at: float | None = None, **profile: Any) -> Decision:
        """Add a profile."""
        return self.any("REGISTER_PROFILE", at, workload_name=workload, profile_name=name, profile=profile)

    def register(
        self, job_id: str, profile: str, at: float | None = None, inside: dict[str, Any] | None = None, **more: Any
    ) -> Decision:
        """Submit a job of one host; ``inside`` is its profile, if that comes with it."""
        job = {"id": job_id, "subtime": 0, "res": 1, "profile": profile, **more}
        data = {"job_id": job_id, "job": job, **({} if inside is None else {"profile": inside})}
        return self.any("REGISTER_JOB", at, **data)

    def change(self, job_id: str, state: str, at: float | None = None) -> Decision:
        """Declare a job to be in a state."""
        return self.any("CHANGE_JOB_STATE", at, job_id=job_id, job_state=state, kill_reason="")

    def metadata(self, job_id: str, text: str, at: float | None = None) -> Decision:
        """Attach a text to a job."""
        return self.any("SET_JOB_METADATA", at, job_id=job_id, metadata=text)

    def switch(self, resources: str, state: str | int, at: float | None = None) -> Decision:
        """Bring hosts into a power state."""
        return self.any("SET_RESOURCE_STATE", at, resources=resources, state=state)

    def query(self, at: float | None = None, **requests: Any) -> Decision:
        """Ask the server."""
        return self.any("QUERY", at, requests=requests)


class Scripted:
    """A transport to a script: every message takes the way through its frame."""

    apart = True

    def __init__(self, starts: Mapping[str, str], answers: Answers) -> None:
        self._starts = dict(starts)
        self._decide = answers if callable(answers) else None
        self._answers = {} if callable(answers) else {float(time): list(made) for time, made in answers.items()}
        self._notice: Notice | None = None
        self.sent: list[dict[str, Any]] = []

    def greet(self, run_id: str, server: str) -> tuple[HelloData, WelcomeData]:
        """Do nothing: the dialect has no handshake."""
        return HelloData("script"), WelcomeData(1, (), run_id)

    def send(self, notice: Notice) -> None:
        """Record the frame, if the bundled schedulers could read it, too."""
        self._notice = notice
        frame = batsim_codec.encode_notice(notice)
        assert batsim_codec.decode_notice(frame, notice.seq).now == notice.now
        self.sent.append(json.loads(frame))

    def receive(self) -> Reply:
        """Start jobs when they are submitted, and send the decisions of this time."""
        assert self._notice is not None
        notice = self.sent[-1]
        submitted = [event["data"]["job_id"] for event in notice["events"] if event["type"] == "JOB_SUBMITTED"]
        decisions: list[Decision] = [
            ("EXECUTE_JOB", {"job_id": job_id, "alloc": self._starts.pop(job_id)}, None)
            for job_id in submitted
            if job_id in self._starts
        ]
        decisions += self._answers.pop(notice["now"], []) if self._decide is None else self._decide(notice)
        events = [
            {"timestamp": notice["now"] if at is None else at, "type": kind, "data": data}
            for kind, data, at in decisions
        ]
        now = max([notice["now"], *(event["timestamp"] for event in events)])
        return batsim_codec.decode_reply(json.dumps({"now": now, "events": events}).encode(), self._notice)

    def farewell(self, notice: Notice) -> None:
        """Keep the last notice."""
        self.send(notice)

    def close(self) -> None:
        """Do nothing."""

    def check_said(self) -> None:
        """Assert that all of the script was played."""
        assert not self._answers, f"never said, since no notice had that time: {self._answers}"
        assert not self._starts, f"never started: {self._starts}"


class Run:
    """The results of a run."""

    def __init__(self, notices: list[dict[str, Any]], result: Result, prefix: Path) -> None:
        self.notices = notices
        self.result = result
        self.prefix = prefix

    @property
    def story(self) -> list[str]:
        """Each notice as a line: its time, and its events, with their own time where that is another one."""
        return [_line(notice) for notice in self.notices]

    @property
    def failure(self) -> str:
        """What ended the run early, with its exit code: ``"3: text"``; empty if nothing did."""
        failure = self.result.failure
        return "" if failure is None else f"{failure.exit_code}: {failure}"

    def events(self, kind: str) -> list[dict[str, Any]]:
        """Return the data of all events of a type."""
        return [event["data"] for notice in self.notices for event in notice["events"] if event["type"] == kind]

    def rows(self, file: str) -> list[dict[str, str]]:
        """Return the rows of an output: jobs, schedule, machine_states, pstate_changes, consumed_energy."""
        return list(csv.DictReader(Path(f"{self.prefix}_{file}.csv").read_text().splitlines()))

    def job(self, job_id: str) -> dict[str, str]:
        """Return a job's row."""
        workload, _, name = job_id.rpartition("!")
        (row,) = [row for row in self.rows("jobs") if (row["workload_name"], row["job_id"]) == (workload or "w0", name)]
        return row


def _line(notice: dict[str, Any]) -> str:
    now = notice["now"]
    parts = [
        ("" if event["timestamp"] == now else f"@{event['timestamp']:g} ") + _event(event["type"], event["data"])
        for event in notice["events"]
    ]
    return f"{now:g}: {', '.join(parts)}"


def _event(kind: str, data: dict[str, Any]) -> str:
    match kind:
        case "JOB_SUBMITTED":
            return f"submitted {data['job_id']}"
        case "JOB_COMPLETED":
            state = data["job_state"].removeprefix("COMPLETED_")
            return f"{state} {data['job_id']} ({data['return_code']}) on {data['alloc']}"
        case "JOB_KILLED":
            shares = {
                job_id: f"={done['progress']:g}" if "progress" in done else "=..."
                for job_id, done in data["job_progress"].items()
            }
            return "killed " + " ".join(job_id + shares.get(job_id, "") for job_id in data["job_ids"])
        case "NOTIFY":
            return " ".join(["notify", *map(str, data.values())])
        case "RESOURCE_STATE_CHANGED":
            return f"state {data['resources']}={data['state']}"
        case "ANSWER":
            return f"answer {data}"
        case _:
            return kind.lower()


Machine = SimGridPlatform
Play = Callable[..., Run]


@pytest.fixture(scope="session")
def say() -> Say:
    """Return the maker of decisions."""
    return Say()


@pytest.fixture(scope="session")
def machine() -> Callable[..., Machine]:
    """Return the function machine(hosts, speed="100f", **props) -> platform; "__" in a prop's name is nothing."""

    def make(hosts: int, speed: str = "100f", inside: str = "", **props: str) -> Machine:
        texts = "".join(f'<prop id="{name}" value="{value}"/>' for name, value in props.items())
        elements = "".join(f'<host id="h{host}" speed="{speed}">{texts}</host>' for host in range(hosts))
        zone = f'<zone id="z" routing="None"><host id="master_host" speed="1f"/>{elements}{inside}</zone>'
        return parse_simgrid(f'<platform version="4.1">{zone}</platform>', "machine.xml")

    return make


@pytest.fixture(scope="session")
def job() -> Callable[..., dict[str, Any]]:
    """Return the function job(name, profile, res=1, at=0, **more) -> its JSON object."""

    def make(name: str, profile: str, res: int = 1, at: float = 0, **more: Any) -> dict[str, Any]:
        return {"id": name, "subtime": at, "res": res, "profile": profile, **more}

    return make


@pytest.fixture
def play(tmp_path: Path, machine: Callable[..., Machine]) -> Play:
    """Return the function that plays a run.

    play(jobs, starts={job: alloc}, answers={time: decisions}, profiles={...}, hosts=4, others=[jobs, ...],
    events=[...], **options): jobs in ``starts`` are started when they are announced; a profile "d60" is a delay of
    60 s. All of the script must be played unless ``unsaid``.
    """

    def run(
        jobs: Sequence[dict[str, Any]] = (),
        starts: Mapping[str, str] | None = None,
        answers: Answers | None = None,
        *,
        profiles: Mapping[str, Any] | None = None,
        hosts: int | Machine = 4,
        others: Sequence[Sequence[dict[str, Any]]] = (),
        events: Sequence[dict[str, Any]] = (),
        unsaid: bool = False,
        **options: Any,
    ) -> Run:
        workloads = []
        for number, each in enumerate([jobs, *others] if jobs else others):
            named = {one["profile"]: {"type": "delay", "delay": float(one["profile"][1:])} for one in each
                     if one["profile"] not in (profiles or {})}  # fmt: skip
            text = json.dumps({"nb_res": 4, "jobs": each, "profiles": {**named, **(profiles or {})}})
            workloads.append(parse_batsim(text.encode(), str(tmp_path / f"jobs{number}.json")))
        file = tmp_path / "events.txt"
        file.write_text("".join(json.dumps(event) + "\n" for event in events))
        settings = BatsimOptions(events=read_events(file), **options)
        transport = Scripted(starts or {}, answers or {})
        platform = machine(hosts) if isinstance(hosts, int) else hosts
        prefix = tmp_path / "out"
        result = simulate(
            Setup.of(platform, *workloads, batsim=settings),
            transport,
            clock=lambda: 0.0,
            outputs=BatsimOutputs(str(prefix)),
        )
        if result.failure is None and not unsaid:
            transport.check_said()
        return Run(transport.sent, result, prefix)

    return run

"""The state of a run in Batsim's way, through JSON and into a new engine: the rest of the run is the same."""

import json
import shutil
import tempfile
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from pipistrelle.platforms.failures.outage import Outage, Outages
from pipistrelle.protocol.base.state import from_json, plain, to_json
from pipistrelle.protocol.batsim import codec as batsim_codec
from pipistrelle.protocol.messages import Notice, Reply
from pipistrelle.server.attempts.attempt import spending_of
from pipistrelle.server.batsim.outputs import BatsimOutputs
from pipistrelle.server.engine.engine import Engine
from pipistrelle.server.engine.observers import Deferred, Observer
from pipistrelle.server.errors import RunError
from pipistrelle.server.outages.reliability import Reliability
from pipistrelle.server.outputs.metrics import Metrics
from pipistrelle.server.setup.setup import BatsimOptions, Setup
from pipistrelle.server.simulation.assembly import make_engine
from pipistrelle.traces.batsim.events import read_events
from pipistrelle.traces.batsim.workload import parse_batsim

HOSTS = 5
MOST_NOTICES = 80
PROFILES = {
    "d7": {"type": "delay", "delay": 7.0},
    "w900": {"type": "parallel_homogeneous", "cpu": 900, "com": 50},
    "t4000": {"type": "parallel_homogeneous_total", "cpu": 4000, "com": 0},
    "both": {"type": "composed", "repeat": 2, "seq": ["w900", "d7"]},
    "deep": {"type": "composed", "repeat": 2, "seq": ["both", "t4000"]},
}
#: pstates 0 and 1 compute; 2 is asleep, entered through 3 (5 s) and left through 4 (10 s)
SPEEDS = "100f,50f,1e-3f,0.2f,0.1f"
WATTS = "90:100:200, 80:85:150, 9:9:9, 50:50:50, 70:70:70"
EVENTS = (
    {"timestamp": 9, "type": "machine_unavailable", "resources": "1-2"},
    {"timestamp": 33, "type": "machine_available", "resources": "1-2"},
)
JOBS = st.lists(
    st.tuples(st.integers(0, 40), st.integers(1, 3), st.sampled_from(sorted(PROFILES)), st.sampled_from([-1, 6, 90])),
    min_size=1,
    max_size=7,
)


class Story(Observer):
    """Records the observers' calls on jobs and units."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def started(self, now: float, job: Any) -> None:
        """Write it down."""
        self.lines.append(f"{now!r} started {job.id} {job.alloc}")

    def ended(self, now: float, job: Any) -> None:
        """Write it down."""
        spent = None if job.attempt is None or not job.alloc else spending_of(job)
        self.lines.append(f"{now!r} ended {job.id} {job.state} {job.energy!r} {spent}")

    def settled(self, now: float, idle: int, down: int) -> None:
        """Write it down."""
        self.lines.append(f"{now!r} settled {idle} {down}")

    def switched(self, now: float, units: Any, pstate: int) -> None:
        """Write it down."""
        self.lines.append(f"{now!r} {units} {pstate}")


def answer(engine: Engine, notice: Notice, seed: int, options: BatsimOptions) -> Reply:
    """Return the decisions of a stateless scheduler: random, but legal, because illegal ones end the run."""
    chance = Random(seed * 1000 + notice.seq)  # noqa: S311 - a test's dice
    now, cluster, made = notice.now, engine.cluster, []

    def say(kind: str, **data: Any) -> None:
        made.append({"timestamp": now, "type": kind, "data": data})

    used = set().union(*(job.alloc for job in cluster.running.values()))
    free = [unit for unit in range(HOSTS) if unit not in used and unit not in cluster.ledger.blocked]
    for job in cluster.waiting.values():
        if len(free) >= job.size and chance.random() < 0.8:
            say("EXECUTE_JOB", job_id=job.id, alloc=" ".join(map(str, free[: job.size])))
            del free[: job.size]
        elif chance.random() < 0.04:
            say("REJECT_JOB", job_id=job.id)
    if cluster.running and chance.random() < 0.1:
        say("KILL_JOB", job_ids=[chance.choice(list(cluster.running))])
    if free and options.energy and chance.random() < 0.3:
        say("SET_RESOURCE_STATE", resources=str(free.pop()), state=chance.choice("012"))
    if options.energy and chance.random() < 0.2:
        say("QUERY", requests={"consumed_energy": {}})
    if options.dynamic_jobs:
        if chance.random() < 0.3:
            name = f"p{notice.seq}"
            say("REGISTER_PROFILE", workload_name="dyn", profile_name=name, profile=PROFILES["w900"])
            job = {"id": f"dyn!{notice.seq}", "subtime": now, "res": 1, "walltime": 40, "profile": name}
            say("REGISTER_JOB", job_id=job["id"], job=job)
        if notice.seq > 8:
            say("NOTIFY", type="registration_finished")
    if chance.random() < 0.2:
        say("CALL_ME_LATER", timestamp=now + 1 + chance.randrange(9))
    return batsim_codec.decode_reply(json.dumps({"now": now, "events": made}).encode(), notice)


class Written:
    """The outputs in a folder, and all their writers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.outputs = BatsimOutputs(str(folder / "out"))
        self.writers = list(self.outputs.observers())

    def metered(self, meter: Any) -> Observer:
        """Return the writer of energy."""
        self.writers.append(self.outputs.metered(meter))
        return self.writers[-1]

    def close(self) -> None:
        """Close the files."""
        for writer in self.writers:
            writer.ends(0.0, "completed", "")


def played(
    setup: Setup, options: BatsimOptions, seed: int, folder: Path, resume_at: int | None = None
) -> tuple[list[Any], list[str], dict[str, str]]:
    """Return the notices, the observers' calls, and the outputs.

    At a notice engine and outputs are replaced by others restored from their states.
    """
    story = Story()
    written = Written(folder / "0")
    (folder / "0").mkdir(parents=True)

    def build() -> tuple[Engine, Deferred]:
        deferred = Deferred([story, *written.outputs.observers()])
        return make_engine(setup, (), [deferred], written.metered), deferred

    engine, deferred = build()
    told: list[Any] = []
    try:
        while (notice := engine.advance()) is not None and notice.seq < MOST_NOTICES:
            told.append(plain(notice.events))
            engine.check_invariants()
            engine.apply(answer(engine, notice, seed, options))
            engine.check_invariants()
            if notice.seq == resume_at:
                deferred.flush()
                state, files = to_json(engine.state()), to_json(written.outputs.state())
                shutil.copytree(folder / "0", folder / "1")
                written.close()
                written = Written(folder / "1")
                engine, deferred = build()
                engine.restore(from_json(state))
                written.outputs.restore(from_json(files))
                assert to_json(engine.state()) == state
                assert to_json(written.outputs.state()) == files
    except RunError as failure:
        told.append(str(failure))
    told.append(plain(engine.end("completed").events))
    engine.close()
    written.outputs.after(Metrics().summary())
    return told, story.lines, {path.name: path.read_text() for path in written.folder.iterdir()}


@given(
    jobs=JOBS,
    energy=st.booleans(),
    sharing=st.booleans(),
    dynamic=st.booleans(),
    failing=st.booleans(),
    happens=st.booleans(),
    seed=st.integers(0, 2**20),
    resume_at=st.integers(1, 20),
)
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_run_resumes_from_its_state(
    tmp_path: Any,
    machine: Any,
    jobs: Any,
    energy: bool,
    sharing: bool,
    dynamic: bool,
    failing: bool,
    happens: bool,
    seed: int,
    resume_at: int,
) -> None:
    """Work of hosts, shared hosts, switching, energy, registered jobs, events from outside and failures."""
    rows = [
        {"id": str(number), "subtime": at, "res": size, "profile": profile, "walltime": limit}
        for number, (at, size, profile, limit) in enumerate(sorted(jobs))
    ]
    workload = parse_batsim(json.dumps({"nb_res": HOSTS, "jobs": rows, "profiles": PROFILES}).encode(), "jobs.json")
    file = tmp_path / "events.txt"
    file.write_text("".join(json.dumps(one) + "\n" for one in EVENTS if happens))
    options = BatsimOptions(
        energy=energy, compute_sharing=sharing, dynamic_jobs=dynamic, events=read_events(file), bandwidth=100.0
    )
    outages = Outages.of([Outage(0, 5.0, 12.0), Outage(3, 11.0, 30.0), Outage(0, 40.0, 44.0)])
    reliability = Reliability(outages=outages)
    hosts = machine(HOSTS, SPEEDS, core="2", wattage_per_state=WATTS, sleep_pstates="2:3:4")
    setup = Setup.of(hosts, workload, batsim=options, reliability=reliability if failing and not sharing else None)

    with tempfile.TemporaryDirectory() as base:
        straight = played(setup, options, seed, Path(base, "whole"))
        event(f"resumed: {len(straight[0]) > resume_at}")
        assert played(setup, options, seed, Path(base, "resumed"), resume_at) == straight

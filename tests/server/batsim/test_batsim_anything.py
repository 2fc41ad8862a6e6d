"""For any replies a run ends with a documented exit code, and its files are consistent."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

PROFILES: dict[str, Any] = {
    "each": {"type": "parallel_homogeneous", "cpu": 300, "com": 0},
    "total": {"type": "parallel_homogeneous_total", "cpu": 500, "com": 0, "ret": 2},
    "wait": {"type": "delay", "delay": 4},
    "both": {"type": "composed", "repeat": 2, "seq": ["each", "wait"]},
}
JOBS = [("1", "each", 1, 1), ("2", "both", 2, 1), ("3", "wait", 1, 2), ("4", "total", 3, 4), ("5", "wait", 4, 7)]
NAMES = [f"w0!{name}" for name, *_ in JOBS] + ["dyn!1", "dyn!2", "w0!1#1", "none!1"]
STATES = ["RUNNING", "REJECTED", "COMPLETED_SUCCESSFULLY", "COMPLETED_KILLED", "COMPLETED_FAILED"]
EVENTS = [
    {"type": "machine_unavailable", "timestamp": 3, "resources": "1"},
    {"type": "power_cap", "timestamp": 5},
    {"type": "machine_available", "timestamp": 6, "resources": "0-3"},
]
SPEEDS = "100f,50f,1e-3f,0.2f,0.5f"
WATTS = "90:100:200, 80:85:150, 9:9:9, 50:50:50, 70:70:70"
MAPPINGS = [None, {"0": "0"}, {"0": "0", "1": "0"}, {"0": "1", "1": "0"}]

name = st.sampled_from(NAMES)
hosts = st.sampled_from(["0", "1", "2", "3", "0-1", "2-3", "1-2", "0-2", "0-3"])
later = st.sampled_from([None, None, 0.5, 2.0])


def decisions(say) -> st.SearchStrategy[Callable[[float], Any]]:
    """Return decisions, as functions of the time at which they are made."""

    def dated(make: Callable[..., Any], *parts: Any) -> st.SearchStrategy[Callable[[float], Any]]:
        def at(delay: float | None, *values: Any) -> Callable[[float], Any]:
            return lambda now: make(*values, at=None if delay is None else now + delay)

        return st.builds(at, later, *parts)

    def execute(job_id: str, alloc: str, mapping: Any, at: float | None) -> Any:
        return say.execute(job_id, alloc, at, **({} if mapping is None else {"mapping": mapping}))

    return st.one_of(
        dated(execute, name, hosts, st.sampled_from(MAPPINGS)),
        dated(say.reject, name),
        dated(say.kill, name),
        dated(say.change, name, st.sampled_from(STATES)),
        dated(say.metadata, name, st.just("x")),
        dated(say.switch, hosts, st.sampled_from(["0", "1", "2"])),
        dated(say.register, name, st.sampled_from(list(PROFILES))),
        dated(say.notify, st.sampled_from(["registration_finished", "continue_registration"])),
        st.just(lambda now: say.query(consumed_energy={})),
        st.builds(lambda delay: lambda now: say.call(now + delay), st.sampled_from([0, 0.25, 3.0])),
    )


def check_files(run) -> None:
    """Assert what holds in any run on 4 hosts of at most 200 W."""
    times = [notice["now"] for notice in run.notices]
    assert times == sorted(times)
    rows = run.rows("jobs")
    ids = [(row["workload_name"], row["job_id"]) for row in rows]
    assert len(set(ids)) == len(ids)
    for row in rows:
        if row["allocated_resources"]:
            assert 0 <= float(row["consumed_energy"]) <= 4 * 200 * float(row["execution_time"]) + 1e-6
    for row in run.rows("machine_states"):
        assert sum(int(value) for column, value in row.items() if column != "time") <= 4
    completed = [data["job_id"] for data in run.events("JOB_COMPLETED")]
    assert len(set(completed)) == len(completed)


@pytest.mark.parametrize("sharing", [False, True])
def test_no_reply_breaks_the_server(play, job, say, machine, sharing) -> None:
    """Legal or not: codes 0, 3 or 5, each job once in the files, and no more energy than the hosts can draw."""
    platform = machine(4, SPEEDS, wattage_per_state=WATTS, sleep_pstates="2:3:4")
    jobs = [job(one, profile, res=res, at=at, walltime=12) for one, profile, res, at in JOBS]

    @settings(max_examples=60, suppress_health_check=list(HealthCheck))
    @given(st.dictionaries(st.sampled_from([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]), st.lists(decisions(say), max_size=4)))
    def check(script: dict[float, list[Callable[[float], Any]]]) -> None:
        answers = {time: [make(time) for make in made] for time, made in script.items()}
        run = play(
            jobs, {}, answers, profiles=PROFILES, hosts=platform, events=EVENTS, unsaid=True,
            energy=True, dynamic_jobs=True, profile_reuse=True, compute_sharing=sharing,
            acknowledge_dynamic_jobs=True, forward_profiles=True, forward_unknown_events=True,
        )  # fmt: skip
        assert run.failure[:2] in ("", "3:", "5:")
        check_files(run)

    check()


class Wanderer:
    """A scheduler that does whatever is legal, at random, and brings everything to an end."""

    def __init__(self, say, seed: int, *, sharing: bool) -> None:
        self._say = say
        self._random = random.Random(seed)  # noqa: S311
        self._sharing = sharing
        self._sizes: dict[str, int] = {}
        self._running: dict[str, set[int]] = {}
        self._elsewhere: set[str] = set()
        self._asleep: set[int] = set()
        #: {host that is being switched: the state that it will be in}
        self._on_the_way: dict[int, str] = {}
        self._away: set[int] = set()
        self._registered = 0
        self._finished = False
        self.done = 0

    def __call__(self, notice: dict[str, Any]) -> list[Any]:
        """Update the state from the events and decide."""
        for event in notice["events"]:
            self._note(event["type"], event["data"])
        now, pick = notice["now"], self._random
        decisions = [made for _ in range(pick.randrange(4)) if (made := self._something(now)) is not None]
        if now > 30 or self._registered == 6:
            decisions += self._tidy()
        elif not pick.randrange(3) or not (self._running or self._on_the_way):
            decisions.append(self._say.call(now + pick.choice([0.25, 1, 3])))
        if decisions and not pick.randrange(4):  # it takes its time to think
            delay = pick.choice([0.5, 2.0])
            decisions.append(self._say.query(at=now + delay, consumed_energy={}))
        self.done += len(decisions)
        return decisions

    def _note(self, kind: str, data: dict[str, Any]) -> None:
        if kind == "JOB_SUBMITTED":
            self._sizes[data["job_id"]] = data["job"]["res"]
        elif kind == "JOB_COMPLETED":
            self._running.pop(data["job_id"], None)
            self._elsewhere.discard(data["job_id"])
        elif kind == "RESOURCE_STATE_CHANGED":
            for host in numbers(data["resources"]):
                if self._on_the_way.get(host) == data["state"]:
                    del self._on_the_way[host]
        elif kind == "NOTIFY" and data["type"].startswith("event_machine"):
            hosts = numbers(data["resources"])
            self._away = self._away - hosts if data["type"].endswith("_available") else self._away | hosts

    def _usable(self) -> list[int]:
        usable = set(range(4)) - self._asleep - self._on_the_way.keys() - self._away
        return sorted(usable if self._sharing else usable.difference(*self._running.values()))

    def _something(self, now: float) -> Any:
        say, pick = self._say, self._random
        usable = self._usable()
        idle = sorted(set(usable).difference(*self._running.values()))
        what = pick.choice(
            ["start"] * 6 + ["kill", "declare", "elsewhere", "sleep", "wake", "speed", "register", "query"]
        )
        fitting = [name for name, size in self._sizes.items() if size <= len(usable)]
        if what == "start" and fitting:
            job_id = pick.choice(fitting)
            hosts = sorted(pick.sample(usable, self._sizes.pop(job_id)))
            self._running[job_id] = set(hosts)
            return say.execute(job_id, " ".join(map(str, hosts)))
        if what == "kill" and self._running:  # it is announced when it has completed
            return say.kill(*pick.sample(sorted(self._running), 1))
        if what == "declare" and self._elsewhere:
            job_id = min(self._elsewhere)
            self._elsewhere.discard(job_id)
            return say.change(job_id, pick.choice(STATES[2:]))
        if what == "elsewhere" and self._sizes:
            job_id = pick.choice(sorted(self._sizes))
            del self._sizes[job_id]
            self._elsewhere.add(job_id)
            return say.change(job_id, "RUNNING")
        if what == "sleep" and idle:
            host = pick.choice(idle)
            self._asleep.add(host)
            self._on_the_way[host] = "2"
            return say.switch(str(host), "2")
        if what == "wake" and (asleep := sorted(self._asleep - self._on_the_way.keys() - self._away)):
            self._asleep -= set(asleep)
            state = pick.choice(["0", "1"])
            self._on_the_way.update(dict.fromkeys(asleep, state))
            return say.switch(" ".join(map(str, asleep)), state)
        if what == "speed" and usable:
            return say.switch(str(pick.choice(usable)), pick.choice(["0", "1"]))
        if what == "register" and self._registered < 6 and not self._finished:
            self._registered += 1
            return say.register(f"w0!{pick.choice('abc')}{self._registered}", pick.choice(["each", "both", "wait"]))
        return say.query(consumed_energy={}) if what == "query" else None

    def _tidy(self) -> list[Any]:
        """Kill every job that cannot end by itself, and register no more."""
        say = self._say
        tidied = [say.change(job_id, "COMPLETED_SUCCESSFULLY") for job_id in sorted(self._elsewhere)]
        tidied += [say.reject(job_id) for job_id in self._sizes]
        self._elsewhere.clear()
        self._sizes.clear()
        if not self._finished:
            self._finished = True
            tidied.append(say.notify("registration_finished"))
        return tidied


def numbers(hosts: str) -> set[int]:
    """Return the hosts of a text as numbers."""
    ends = [part.split("-") for part in hosts.split()]
    return {host for low, *high in ends for host in range(int(low), int(high[0] if high else low) + 1)}


@pytest.mark.parametrize("sharing", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_a_scheduler_that_is_legal_brings_its_run_to_an_end(play, job, say, machine, seed, sharing) -> None:
    """Starts, kills, declared states, power states, registered jobs and outages together: nothing is illegal."""
    platform = machine(4, SPEEDS, wattage_per_state=WATTS, sleep_pstates="2:3:4")
    jobs = [job(one, profile, res=res, at=at, walltime=12) for one, profile, res, at in JOBS]
    jobs += [job(str(number), "wait", res=1 + number % 4, at=number, walltime=9) for number in range(6, 28)]
    run = play(
        jobs, {}, Wanderer(say, seed, sharing=sharing), profiles=PROFILES, hosts=platform, events=EVENTS,
        energy=True, dynamic_jobs=True, profile_reuse=True, compute_sharing=sharing,
        acknowledge_dynamic_jobs=True, forward_unknown_events=True,
    )  # fmt: skip
    assert run.failure == ""
    check_files(run)
    assert len(run.rows("jobs")) == len(run.events("JOB_SUBMITTED"))
    assert float(run.rows("consumed_energy")[-1]["energy"]) <= 4 * 200 * run.notices[-1]["now"]

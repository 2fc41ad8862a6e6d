"""The executor against references that share no code with it: exact processor sharing, sums by hand, kept work."""

from fractions import Fraction
from math import inf, isclose, nan
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.platforms.simgrid.platform_file import parse_simgrid
from pipistrelle.protocol.batsim.messages import TaskProgress
from pipistrelle.protocol.events import Progress
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.server.engine.agenda import END, PHASE
from pipistrelle.server.engine.clockwork import Clockwork, DialectRules
from pipistrelle.server.engine.cluster import Cluster
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.hosts.executor import Executor
from pipistrelle.server.hosts.hosts import Hosts
from pipistrelle.traces.profiles import (
    Composed,
    Delay,
    Parallel,
    ParallelHomogeneous,
    ParallelHomogeneousTotal,
    Profile,
    UsageTrace,
)

#: agenda classes of a test's events: within an instant, after all the executor's own
START, KILL, SPEED = 20, 21, 22


def make_hosts(speeds: list[str], cores: int = 1) -> Hosts:
    """Return metered hosts of these speeds per power state ("100f,50f"), numbered in their order."""
    elements = ""
    for number, texts in enumerate(speeds):
        watts = ",".join(["1:2:4"] * len(texts.split(",")))
        prop = f'<prop id="wattage_per_state" value="{watts}"/>'
        elements += f'<host id="h{number:03}" speed="{texts}" core="{cores}">{prop}</host>'
    text = f'<platform version="4.1"><zone id="z" routing="None">{elements}</zone></platform>'
    return Hosts(parse_simgrid(text, "m.xml"), energy=True)


class Bench:
    """Drives an executor as the engine does, and records jobs' ends and hosts' flops."""

    def __init__(self, hosts: Hosts, units: int, *, sharing: bool = False, bandwidth: float | None = None) -> None:
        self.hosts, self.units = hosts, units
        self.clockwork = Clockwork(Cluster(units), DialectRules(tells_profiles=True))
        self.agenda = self.clockwork.agenda
        self.executor = Executor(
            hosts, self.clockwork, lambda _, name: delay(0.0, name), sharing=sharing, bandwidth=bandwidth
        )
        self.ends: dict[str, tuple[float, str]] = {}
        self.killed: dict[str, Progress] = {}
        self.flops = 0.0
        self._running = self.clockwork.cluster.running

    def job(
        self, name: str, alloc: str, work: Profile, *, at: float = 0.0, walltime: float = inf, mapping: Any = None
    ) -> Job:
        """Put a job's start on the agenda."""
        units = NodeSet.parse(alloc)
        job = Job(name, 0.0, len(units), walltime, nan, work.name, alloc=units, work=work, mapping=mapping)
        self.agenda.put(at, START, job)
        return job

    def run(self) -> "Bench":
        """Let everything happen."""
        while (entry := self.agenda.pop()) is not None:
            time, kind, _, subject = entry
            for host in range(self.units):
                load = self.hosts.load(host) * self.hosts.cores(host)
                self.flops += load * self.hosts.speed(host) * (time - self.clockwork.now)
            assert time >= self.clockwork.now
            self.clockwork.now = time
            if kind == START:
                self._running[subject.id] = subject
                self.executor.begins(subject)
            elif kind == PHASE:
                job = self.executor.phase_over(subject)
                if job is not None:
                    self._end(job.id, "done")
            elif kind == END:
                self._end(subject, "walltime")
            elif kind == KILL and subject.id in self._running:
                self.killed[subject.id] = self.executor.progress(subject)
                self._end(subject.id, "killed")
            elif kind == SPEED:
                host, pstate = subject
                self.hosts.set_pstate(time, host, pstate)
                self.executor.speed_changed(time, [host])
        assert not self._running
        assert [self.hosts.load(host) for host in range(self.units)] == [0.0] * self.units
        return self

    def _end(self, name: str, how: str) -> None:
        job = self._running.pop(name)
        self.executor.over(job)
        if job.ending is not None:
            self.agenda.cancel(job.ending)
        self.ends[name] = (self.clockwork.now, how)


def delay(seconds: float, name: str = "d") -> Delay:
    """Return a delay."""
    return Delay(name=name, delay=seconds)


def compute(flops: float, name: str = "p") -> ParallelHomogeneous:
    """Return a task of this many flops on each host."""
    return ParallelHomogeneous(name=name, cpu=flops, com=0.0)


def times(bench: Bench) -> dict[str, float]:
    """Return when jobs ended."""
    return {name: round(time, 6) for name, (time, _) in bench.run().ends.items()}


# -- alone -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("work", "seconds"),
    [
        (delay(7.0), 7.0),
        (compute(600.0), 12.0),
        (ParallelHomogeneousTotal(name="t", cpu=600.0, com=0.0), 4.0),
        (Parallel(name="v", cpu=(100.0, 0.0, 90.0), com=()), 1.8),
        (Parallel(name="v", cpu=(0.0, 0.0, 0.0), com=()), 0.0),
        (UsageTrace(name="u", phases=(((1.0, 100.0), (0.1, 300.0)), ((1.0, 0.0),), ((0.5, 100.0),))), 4.0),
    ],
)
def test_slowest_host_decides(work: Profile, seconds: float) -> None:
    """On hosts of 100, 200 and 50 flop/s each type lasts as long as the slowest share of it."""
    bench = Bench(make_hosts(["100f", "200f", "50f"]), 3)
    bench.job("a", "0-2", work, at=5.0)

    assert times(bench) == {"a": 5.0 + seconds}


@given(
    flops=st.floats(1e-3, 1e18),
    speed=st.floats(1.0, 1e12),
    start=st.floats(0.0, 1e6),
)
def test_end_is_exact(flops: float, speed: float, start: float) -> None:
    """Alone, a task ends at start + flops / speed, up to the last rounding."""
    if start + flops / speed > 1e9:
        return
    bench = Bench(make_hosts([f"{speed!r}f"]), 1)
    bench.job("a", "0", compute(flops), at=start)

    ((end, how),) = bench.run().ends.values()
    assert how == "done"
    assert isclose(end, start + flops / speed, rel_tol=4e-16, abs_tol=2e-9)


@given(
    flops=st.integers(1, 10_000),
    changes=st.lists(st.tuples(st.integers(1, 200), st.integers(0, 1), st.integers(0, 2)), max_size=6),
)
def test_changes_of_speed_retime_what_is_left(flops: int, changes: list[tuple[int, int, int]]) -> None:
    """Whatever power states two hosts go through, a task ends when the slowest speeds add up to its work."""
    speeds = (100, 40, 7)
    bench = Bench(make_hosts(["100f,40f,7f"] * 2), 2)
    bench.job("a", "0-1", compute(float(flops)))
    for time, host, pstate in changes:
        bench.agenda.put(float(time), SPEED, (host, pstate))

    left, now, state = Fraction(flops), Fraction(0), [0, 0]
    for time, host, pstate in sorted(changes, key=lambda change: change[0]):
        slowest = min(speeds[each] for each in state)
        if left <= slowest * (time - now):
            break
        left -= slowest * (time - now)
        now = Fraction(time)
        state[host] = pstate
    expected = float(now + left / min(speeds[each] for each in state))
    assert isclose(bench.run().ends["a"][0], expected, abs_tol=1e-7)


# -- together --------------------------------------------------------------------------------------------------------


def shared_host(jobs: list[tuple[int, int]], speed: int) -> list[Fraction]:
    """Return when jobs (start, flops) end that share one core of a host equally."""
    ends: list[Fraction] = [Fraction(0)] * len(jobs)
    left = {place: Fraction(flops) for place, (_, flops) in enumerate(jobs)}
    running: set[int] = set()
    coming = sorted(range(len(jobs)), key=lambda place: jobs[place][0])
    now = Fraction(0)
    while running or coming:
        each = Fraction(speed, max(len(running), 1))
        steps = [left[place] / each for place in running] + [jobs[place][0] - now for place in coming[:1]]
        step = min(steps)
        now += step
        for place in list(running):
            left[place] -= step * each
            if left[place] == 0:
                running.remove(place)
                ends[place] = now
        while coming and jobs[coming[0]][0] == now:
            running.add(coming.pop(0))
    return ends


@settings(max_examples=200)
@given(
    jobs=st.lists(st.tuples(st.integers(0, 30), st.integers(1, 500)), min_size=1, max_size=12),
    others=st.lists(st.tuples(st.integers(0, 30), st.integers(1, 500)), max_size=6),
)
def test_one_core_is_shared_equally(jobs: list[tuple[int, int]], others: list[tuple[int, int]]) -> None:
    """On a host of one core jobs end as in exact processor sharing; jobs of another host have no effect."""
    bench = Bench(make_hosts(["30f", "50f"]), 2, sharing=True)
    for place, (start, flops) in enumerate(jobs):
        bench.job(f"a{place}", "0", compute(float(flops)), at=float(start))
    for place, (start, flops) in enumerate(others):
        bench.job(f"b{place}", "1", compute(float(flops)), at=float(start))

    ends = bench.run().ends
    for prefix, rows, speed in (("a", jobs, 30), ("b", others, 50)):
        for place, end in enumerate(shared_host(rows, speed)):
            assert isclose(ends[f"{prefix}{place}"][0], float(end), abs_tol=1e-7), (prefix, place)


def test_a_slowed_task_leaves_what_it_cannot_use() -> None:
    """A task that shares one of its hosts is slower on the other, too, where a third task gets the rest."""
    bench = Bench(make_hosts(["100f", "100f"]), 2, sharing=True)
    bench.job("wide", "0-1", compute(1000.0))
    bench.job("left", "0", compute(4000.0))
    bench.job("also", "0", compute(4000.0))
    bench.job("right", "1", compute(1000.0))

    # 100/3 flop/s for each on host 0, so 200/3 for "right"; it is done at 15 s, when "wide" has had 500 of 1000.
    # At 30 s "wide" is done; the others have had 1000 each, and share the host in halves.
    assert times(bench) == {"right": 15.0, "wide": 30.0, "left": 90.0, "also": 90.0}


@pytest.mark.parametrize(("cores", "seconds"), [(1, 6.0), (2, 3.0), (4, 3.0)])
def test_ranks_on_one_host_add_up(cores: int, seconds: float) -> None:
    """Two ranks that a mapping puts on one host share its cores; the one with most to do has one core at most."""
    bench = Bench(make_hosts(["100f"] * 2, cores=cores), 2)
    work = Parallel(name="v", cpu=(300.0, 300.0), com=())
    bench.job("a", "0-1", work, mapping=(1, 1))
    assert times(bench) == {"a": seconds}

    bench = Bench(make_hosts(["100f"] * 2, cores=cores), 2)
    bench.job("a", "0-1", UsageTrace(name="u", phases=(((0.1, 300.0),), ((0.1, 300.0),))), mapping=(0, 0))
    assert times(bench) == {"a": seconds}


@settings(max_examples=150)
@given(data=st.data())
def test_work_is_conserved(data: st.DataObject) -> None:
    """The hosts' flops, by their loads, equal the jobs' work; no host is ever more than fully busy."""
    units, cores = 4, data.draw(st.sampled_from([1, 2]))
    bench = Bench(make_hosts(["100f,30f", "50f,25f", "70f,1f", "100f,99f"], cores=cores), units, sharing=True)
    total = 0.0
    kills = []
    for number in range(data.draw(st.integers(1, 7))):
        low = data.draw(st.integers(0, units - 1))
        high = data.draw(st.integers(low, units - 1))
        amounts = data.draw(st.lists(st.integers(0, 900), min_size=high - low + 1, max_size=high - low + 1))
        work = Parallel(name="v", cpu=tuple(map(float, amounts)), com=())
        start = data.draw(st.integers(0, 20))
        job = bench.job(f"{number}", f"{low}-{high}", work, at=float(start))
        total += sum(amounts)
        if data.draw(st.booleans()):
            time = start + data.draw(st.integers(0, 30))
            bench.agenda.put(float(time), KILL, job)
            kills.append((f"{number}", sum(amounts)))
    for _ in range(data.draw(st.integers(0, 4))):
        change = (data.draw(st.integers(0, units - 1)), data.draw(st.integers(0, 1)))
        bench.agenda.put(float(data.draw(st.integers(0, 40))), SPEED, change)

    bench.run()
    for name, amount in kills:
        if name in bench.killed:
            assert 0.0 <= bench.killed[name].progress <= 1.0
            total -= amount * (1.0 - bench.killed[name].progress)
    assert isclose(bench.flops, total, rel_tol=1e-9, abs_tol=1e-5)


# -- communication -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("work", "seconds"),
    [
        (ParallelHomogeneous(name="p", cpu=100.0, com=40.0), 8.0),  # 2 x 40 bytes out of each
        (ParallelHomogeneous(name="p", cpu=1000.0, com=40.0), 10.0),
        (ParallelHomogeneousTotal(name="t", cpu=300.0, com=60.0), 4.0),
        (Parallel(name="v", cpu=(0.0,) * 3, com=(0.0, 5.0, 10.0, 0.0, 0.0, 20.0, 0.0, 0.0, 0.0)), 3.0),
        (Parallel(name="v", cpu=(0.0,) * 3, com=(99.0, 0.0, 0.0, 0.0, 0.0, 20.0, 0.0, 0.0, 0.0)), 2.0),
    ],
)
def test_busiest_host_sends_beside_computing(work: Profile, seconds: float) -> None:
    """At 10 bytes/s a task lasts as long as its slowest host computes, or its busiest one sends or receives."""
    bench = Bench(make_hosts(["100f"] * 3), 3, bandwidth=10.0)
    bench.job("a", "0-2", work)
    assert times(bench) == {"a": seconds}


# -- walltimes, order, progress --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parts", "how"),
    [
        ((compute(1000.0),), "done"),
        ((delay(4.0), compute(600.0)), "done"),
        ((compute(600.0), delay(4.0)), "walltime"),
        ((compute(600.0), delay(4.0), compute(0.0)), "walltime"),
        ((compute(600.0), delay(3.5)), "done"),
    ],
)
def test_work_at_the_very_walltime_is_done_but_delays_are_not(parts: tuple[Any, ...], how: str) -> None:
    """With a walltime of 10 s, a task that ends at 10 s is done; a delay that needs all that was left is not."""
    work = Composed(name="c", repeat=1, seq=parts, names=tuple(part.name for part in parts))
    bench = Bench(make_hosts(["100f"]), 1)
    bench.job("a", "0", work, at=3.0, walltime=10.0)

    assert bench.run().ends["a"] == (13.0 if how == "walltime" or parts[-1] != delay(3.5) else 12.5, how)


_LEAVES = st.one_of(
    st.integers(1, 9).map(lambda seconds: delay(float(seconds), f"d{seconds}")),
    st.integers(0, 9).map(lambda flops: compute(100.0 * flops, f"p{flops}")),
)
_PROFILES = st.recursive(
    _LEAVES,
    lambda parts: st.builds(
        lambda repeat, seq: Composed(
            name=f"c{repeat}-{len(seq)}", repeat=repeat, seq=tuple(seq), names=tuple(part.name for part in seq)
        ),
        st.integers(1, 3),
        st.lists(parts, min_size=1, max_size=3),
    ),
    max_leaves=8,
)


def _seconds(profile: Profile) -> int:
    """Return the duration of a profile of whole seconds on a host of 100 flop/s."""
    if isinstance(profile, Composed):
        return profile.repeat * sum(map(_seconds, profile.seq))
    assert isinstance(profile, Delay | ParallelHomogeneous)
    return round(profile.delay if isinstance(profile, Delay) else profile.cpu / 100)


def _at(profile: Profile, time: float) -> tuple[Any, ...]:
    """Return (index, ..., name and share of the leaf) of where a profile is after ``time`` s."""
    if isinstance(profile, Composed):
        for index in range(profile.repeat * len(profile.seq)):
            part = profile.seq[index % len(profile.seq)]
            if time < _seconds(part):
                return (profile.name, index, *_at(part, time))
            time -= _seconds(part)
        raise AssertionError("it is over by then")
    return (profile.name, round(time / _seconds(profile), 9))


def _told(progress: Progress | None) -> tuple[Any, ...]:
    if isinstance(progress, TaskProgress):
        return (progress.profile_name, progress.current_task_index, *_told(progress.current_task))
    assert progress is not None
    return (progress.profile_name, round(progress.progress, 9))


@given(work=_PROFILES, at=st.floats(0.0, 1.0))
def test_composed_profiles_are_walked_in_order(work: Profile, at: float) -> None:
    """A job killed between two seconds has the progress of sums by hand, at any nesting; else it ends in time."""
    whole = _seconds(work)
    bench = Bench(make_hosts(["100f"]), 1)
    job = bench.job("a", "0", work)
    if whole:
        time = int(at * (whole - 1)) + 0.5
        bench.agenda.put(time, KILL, job)
        assert _told(bench.run().killed["a"]) == _at(work, time)

    bench = Bench(make_hosts(["100f"]), 1)
    bench.job("a", "0", work)
    assert isclose(bench.run().ends["a"][0], whole, abs_tol=1e-6)


def test_progress_of_a_usage_trace_has_no_part() -> None:
    """Batsim does not report a usage trace's progress: its task has the index -1; the share is that of flops."""
    bench = Bench(make_hosts(["100f"] * 2), 2)
    job = bench.job("a", "0-1", UsageTrace(name="u", phases=(((1.0, 100.0), (1.0, 700.0)), ((1.0, 200.0),))))
    bench.agenda.put(2.0, KILL, job)

    assert bench.run().killed["a"] == TaskProgress(0.4, "u", current_task_index=-1)

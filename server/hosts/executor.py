"""Run the work of jobs on simulated hosts."""

from collections.abc import Callable, Iterable
from math import inf
from typing import Any, Final

from pipistrelle.protocol.events import Progress
from pipistrelle.protocol.fields import LATEST
from pipistrelle.server.engine.agenda import END, PHASE
from pipistrelle.server.engine.clockwork import Clockwork
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.errors import Stalled
from pipistrelle.server.hosts.hosts import Hosts
from pipistrelle.server.hosts.phases import Execution, Path, Task, begin_phase, next_task, phase_of
from pipistrelle.server.hosts.sharing import fair_rates
from pipistrelle.traces.profiles import Delay, Profile, outcome

#: tasks on common hosts whose ends differ by at most this (s) end together: the resolution of SimGrid's clock
_AT_ONCE: Final = 1e-9
#: largest such difference relative to the time, for rounding errors
_ROUNDING: Final = 4e-16
#: tasks shorter than this (s) use no capacity
_NO_TIME: Final = 1e-300


class Executor:
    """The engine part that runs the work of jobs on hosts, phase by phase.

    A parallel task advances at the pace of its slowest host. Each rank uses one core; ranks on one host share its
    cores, and tasks on common hosts get fair shares (`fair_rates`). Delays do not depend on hosts. Communication
    overlaps computation: a task lasts at least as long as its busiest host sends or receives at ``bandwidth``.

    `JobLives` ends a job at its walltime, after all `PHASE` entries of that instant. So work that ends exactly at
    the walltime is done. Only a delay that ends then is killed, as in Batsim.

    Args:
        hosts: indexed by unit; the executor sets their load if their energy is metered.
        profile_of: returns a profile, given the prefix of a job's id and the profile's name.
        sharing: whether several jobs may use one host.
        bandwidth: what a host can send, and receive (byte/s); None: communication takes no time.
    """

    def __init__(
        self,
        hosts: Hosts,
        clockwork: Clockwork,
        profile_of: Callable[[str, str], Profile],
        *,
        sharing: bool = False,
        bandwidth: float | None = None,
    ) -> None:
        self._hosts = hosts
        self._clockwork = clockwork
        self._agenda = clockwork.agenda
        self._profile_of = profile_of
        self._sharing = sharing
        self._bandwidth = bandwidth
        self._runs: dict[str, Execution] = {}
        self._tasks: dict[int, Task] = {}
        self._tasks_so_far = 0
        #: {host: its tasks, in order of begin}; used only if tasks can share hosts or hosts are metered
        self._at_work: dict[int, dict[Task, None]] = {}

    def work_of(self, job_id: str, profile: str) -> Profile:
        """Return the work (profile) with this name for a job."""
        return outcome(self._profile_of(job_id.partition("!")[0], profile))[0]

    def begins(self, job: Job) -> None:
        """Begin a job's work; raise Stalled if the work would never end."""
        assert job.work is not None
        now = self._clockwork.now
        job.in_time = False  # becomes True when all work is done
        if job.walltime < inf:
            job.ending = self._agenda.put(now + job.walltime, END, job.id)
        run = self._runs[job.id] = self._run_of(job, now + job.walltime)
        run.phase = begin_phase(run, run.path.descend(job.work), self._hosts, self._bandwidth)
        self._replace(now, run, [], run.phase.tasks)

    def phase_over(self, number: int) -> Job | None:
        """Continue a job after the end of task ``number``.

        Return the job if all its work is done, else None. A returned job has left its hosts; call `over` for it. Raise
        Stalled if the next task would never end.
        """
        now, task = self._clockwork.now, self._tasks[number]
        task.entry = None
        phase, run = task.phase, task.phase.run
        if now >= run.limit and isinstance(phase.leaf, Delay):
            return None
        phase.tasks.remove(task)
        coming = next_task(task, self._hosts)
        if coming is not None:
            phase.tasks.append(coming)
            self._replace(now, run, [task], [coming])
            return None
        leaf = None if phase.tasks else run.path.next()
        if leaf is not None:
            run.phase = begin_phase(run, leaf, self._hosts, self._bandwidth)
            self._replace(now, run, [task], run.phase.tasks)
            return None
        self._replace(now, run, [task], [])
        return None if phase.tasks else self._clockwork.cluster.running[run.job_id]

    def over(self, job: Job) -> None:
        """Remove a job that ends now from its hosts."""
        run = self._runs.pop(job.id)
        assert run.phase is not None
        self._replace(self._clockwork.now, run, run.phase.tasks, [])

    def progress(self, job: Job) -> Progress:
        """Return a running job's progress.

        It is nested like the job's profiles if the dialect reports profiles.
        """
        run = self._runs[job.id]
        assert run.phase is not None
        progress = run.path.progress(run.phase.leaf, run.phase.share(self._clockwork.now))
        return progress if self._clockwork.rules.tells_profiles else Progress(progress.progress)

    def state(self) -> dict[str, Any]:
        """Return the jobs' progress as plain values."""
        runs = []
        for run in self._runs.values():
            assert run.phase is not None
            tasks = [task.state() for task in run.phase.tasks]
            runs.append([run.job_id, run.limit, run.path.begun(), [run.phase.over, tasks]])
        at_work = [[host, [task.number for task in tasks]] for host, tasks in self._at_work.items()]
        return {"runs": runs, "tasks": self._tasks_so_far, "at_work": at_work}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a saved state; hosts, agenda and running jobs must be restored first."""
        entries = self._agenda.of(PHASE)
        for job_id, limit, begun, known in state["runs"]:
            job = self._clockwork.cluster.running[job_id]
            assert job.work is not None
            run = self._runs[job_id] = self._run_of(job, limit)
            run.phase = phase_of(run, run.path.enter(job.work, begun), self._hosts, self._bandwidth, known, entries)
            self._tasks.update((task.number, task) for task in run.phase.tasks)
        self._tasks_so_far = state["tasks"]
        self._at_work = {host: {self._tasks[number]: None for number in numbers} for host, numbers in state["at_work"]}

    def _run_of(self, job: Job, limit: float) -> Execution:
        units = tuple(job.alloc)
        places = units if job.mapping is None else tuple(units[place] for place in job.mapping)
        return Execution(job.id, places, len(set(places)) < len(places), limit, Path())

    def speed_changed(self, now: float, hosts: Iterable[int]) -> None:
        """Adapt the tasks on these hosts to the hosts' new speeds.

        Raise Stalled if a task would never end.
        """
        tasks = {task: None for host in hosts for task in self._at_work.get(host, ())}
        for task in tasks:
            task.alone = self._alone(task)
        self._pace(now, tasks)

    def _replace(self, now: float, run: Execution, gone: list[Task], come: list[Task]) -> None:
        for task in gone:
            del self._tasks[task.number]
            if task.entry is not None:
                self._agenda.cancel(task.entry)
                task.entry = None
        for task in come:
            self._tasks_so_far += 1
            task.number = self._tasks_so_far
            self._tasks[task.number] = task
            task.since = now
            task.alone = self._alone(task)
        if not (self._sharing or run.crowded or self._hosts.metered):
            for task in come:
                self._go_on(now, task, task.alone)
                self._announce([task])
            return
        at_work = self._at_work
        left = {host: None for task in gone for host in task.demands}
        for task in gone:
            for host in task.demands:
                del at_work[host][task]
        for task in come:
            for host in task.demands:
                at_work.setdefault(host, {})[task] = None
        affected = dict.fromkeys(come)
        for host in left:
            if at_work[host]:
                affected.update(at_work[host])
            else:
                del at_work[host]
                self._hosts.set_load(now, host, 0.0)
        self._pace(now, affected)

    def _alone(self, task: Task) -> float:
        """Return how long (s) a task takes if it shares no host."""
        seconds, hosts = task.least, self._hosts
        if task.each is not None:  # the most frequent kind of task, maybe on very many hosts
            return max(seconds, task.each / min(map(hosts.speed, task.demands)))
        for host, (flops, ranks, heaviest) in task.demands.items():
            speed = hosts.speed(host)
            seconds = max(seconds, heaviest / speed)
            if ranks > 1:
                seconds = max(seconds, flops / (speed * hosts.cores(host)))
        return seconds

    def _pace(self, now: float, affected: dict[Task, None]) -> None:
        """Set the pace of these tasks and of all tasks whose pace depends on them."""
        paced: set[Task] = set()
        for task in affected:
            if task in paced:
                continue
            tasks = self._meeting(task)
            paced.update(tasks)
            for each, seconds in zip(tasks, self._together(tasks), strict=True):
                self._go_on(now, each, seconds)
            self._announce(tasks)
            if self._hosts.metered:
                for host in {host: None for each in tasks for host in each.demands}:
                    self._set_load(now, host)

    def _meeting(self, task: Task) -> list[Task]:
        """Return a task and all tasks that share hosts with it.

        They may share hosts directly or through other tasks.
        """
        found = {task: None}
        if self._sharing or task.phase.run.crowded:
            seen: set[int] = set()
            todo = [task]
            while todo:
                for host in todo.pop().demands:
                    if host not in seen:
                        seen.add(host)
                        others = self._at_work[host]
                        if len(others) > 1:
                            todo += [other for other in others if other not in found]
                            found.update(others)
        return list(found)

    def _together(self, tasks: list[Task]) -> list[float]:
        """Return how long (s) each of the tasks takes.

        The tasks share their hosts with no other tasks.
        """
        if len(tasks) == 1:
            return [tasks[0].alone]
        using = [task for task in tasks if task.alone > _NO_TIME]
        bounds = [1 / task.alone for task in using]
        hosts = {host: None for task in using for host in task.demands}
        capacity = {host: self._hosts.speed(host) * self._hosts.cores(host) for host in hosts}
        rates = fair_rates([task.demands for task in using], bounds, capacity)
        slowed = {task: 1 / rate for task, rate, bound in zip(using, rates, bounds, strict=True) if rate < bound}
        return [slowed.get(task, task.alone) for task in tasks]

    def _go_on(self, now: float, task: Task, seconds: float) -> None:
        """Continue a task at a new pace, at which the whole task would take ``seconds``."""
        if task.ends <= now * (1 + _ROUNDING) + _AT_ONCE:
            task.ends = now
        elif seconds != task.seconds:
            task.done = task.share(now)
            task.since = now
            task.seconds = seconds
            left = 1.0 - task.done
            task.ends = now + left * seconds if left else now
            if task.ends > LATEST and task.phase.run.limit == inf:
                raise _never_ends(task)

    def _announce(self, tasks: list[Task]) -> None:
        """Put the end of the task that ends first on the agenda.

        The tasks share hosts.
        """
        first = min(tasks, key=lambda task: task.ends)
        time = first.ends
        for task in tasks:
            if task.entry is not None and (task is not first or task.entry[0] != time):
                self._agenda.cancel(task.entry)
                task.entry = None
        if first.entry is None and time <= LATEST:  # later tasks end at their walltimes
            first.entry = self._agenda.put(time, PHASE, first.number)

    def _set_load(self, now: float, host: int) -> None:
        speed = self._hosts.speed(host)
        load = 0.0
        for task in self._at_work[host]:
            if task.ends > now and task.alone > _NO_TIME:
                load += task.demands[host].flops / speed / task.seconds
        self._hosts.set_load(now, host, load)


def _never_ends(task: Task) -> Stalled:
    return Stalled(
        f"{task.phase.run.job_id} would never end",
        where=f"profile '{task.phase.leaf.name}'",
        expected=f"an end before {LATEST:g} s, or a walltime",
        found=f"{task.seconds:g} s of work and no walltime",
        hint="Give the job a walltime or less work, or its hosts more speed.",
    )

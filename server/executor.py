"""How work becomes time: jobs whose hosts decide how long they take."""

from collections.abc import Iterable
from math import inf
from typing import Protocol

from pipistrelle.protocol.events import Progress
from pipistrelle.server.agenda import PHASE, Agenda
from pipistrelle.server.jobs import Job
from pipistrelle.server.phases import Leaf, Path, Phase, Run, Task, next_task, tasks_of
from pipistrelle.server.sharing import fair_rates
from pipistrelle.traces.profiles import Delay


class WorkingHosts(Protocol):
    """What is asked of hosts, by number: `pipistrelle.server.hosts.Hosts` can do it."""

    @property
    def metered(self) -> bool:
        """Whether it matters how busy they are."""

    def cores(self, host: int) -> int:
        """Return the number of a host's cores."""

    def speed(self, host: int) -> float:
        """Return the speed of one of its cores now, in flop/s."""

    def set_load(self, now: float, host: int, load: float) -> None:
        """Let a host be busy from ``now`` (s) on; ``load`` counts cores."""


class Executor:
    """Runs jobs phase by phase on hosts.

    A parallel task advances at one pace on all of its hosts: that of its slowest. Each rank uses one core; ranks on
    one host share its cores. Alone on its hosts a task takes as long as its slowest host; with others it gets fair
    shares (`fair_rates`). Delays pass whatever the hosts do. What is sent takes its time beside what is computed: a
    task lasts at least as long as its busiest host needs to send or to receive at the bandwidth given.

    Whoever drives it ends each job when its walltime is over, after all the `PHASE` entries of that instant. Work that
    is done by then is done, but a delay that takes all that was left of the walltime has reached it: Batsim's rule.

    Parameters
    ----------
    hosts
        the hosts, by the numbers of the units.
    agenda
        the ends of tasks are put on it, in class `PHASE`.
    sharing
        whether several jobs may meet on a host.
    bandwidth
        what a host sends, and what it receives, in bytes per second; None: nothing is sent.
    """

    def __init__(
        self, hosts: WorkingHosts, agenda: Agenda, *, sharing: bool = False, bandwidth: float | None = None
    ) -> None:
        self._hosts = hosts
        self._agenda = agenda
        self._sharing = sharing
        self._bandwidth = bandwidth
        self._runs: dict[str, Run] = {}
        #: {host: tasks that compute there, in the order of their beginning}
        self._at_work: dict[int, dict[int, Task]] = {}

    def start(self, now: float, job: Job) -> None:
        """Let a job that was given its units begin its work; times in seconds."""
        assert job.work is not None
        units = tuple(job.alloc)
        places = units if job.mapping is None else tuple(units[place] for place in job.mapping)
        run = self._runs[job.id] = Run(job.id, places, Path(job.work), now + job.walltime)
        self._begin(now, run, run.path.first())

    def phase_over(self, now: float, task: Task) -> Run | None:
        """Let what comes after a task begin that has just been done; return the job's run if that was all.

        `job_id` of the run says which job it is; it has left the hosts, but must still be stopped.
        """
        task.entry = None
        phase = task.phase
        run = phase.run
        if now >= run.limit and isinstance(phase.leaf, Delay):
            return None
        phase.tasks.remove(task)
        phase.over += task.weight
        self._leave(now, [task])
        following = next_task(task, self._hosts.cores)
        if following is not None:
            self._enter(now, phase, [following])
        if phase.tasks:
            return None
        leaf = run.path.next()
        if leaf is None:
            run.phase = None
            return run
        self._begin(now, run, leaf)
        return None

    def stop(self, now: float, job: Job) -> None:
        """Take a job off its hosts, however far it is."""
        run = self._runs.pop(job.id)
        if run.phase is not None:
            tasks, run.phase = run.phase.tasks, None
            for task in tasks:
                if task.entry is not None:
                    self._agenda.cancel(task.entry)
            self._leave(now, tasks)

    def progress(self, now: float, job: Job) -> Progress:
        """Return how far a running job is, as nested as its profile is."""
        run = self._runs[job.id]
        assert run.phase is not None, f"{job.id} is done"
        return run.path.progress(run.phase.leaf, run.phase.share(now))

    def speed_changed(self, now: float, hosts: Iterable[int]) -> None:
        """Go on at the present speed on these hosts."""
        met = {key: task for host in hosts for key, task in self._at_work.get(host, {}).items()}
        if met:
            self._pace(now, list(met.values()))

    def _begin(self, now: float, run: Run, leaf: Leaf) -> None:
        phase = run.phase = Phase(run, leaf, [])
        self._enter(now, phase, tasks_of(phase, self._hosts.cores, self._bandwidth))

    def _enter(self, now: float, phase: Phase, tasks: list[Task]) -> None:
        phase.tasks += tasks
        at_work = self._at_work
        for task in tasks:
            task.since = now
            for host in task.demand.flops:
                if host in at_work:
                    at_work[host][id(task)] = task
                else:
                    at_work[host] = {id(task): task}
        self._pace(now, tasks)

    def _leave(self, now: float, tasks: Iterable[Task]) -> None:
        """Take tasks off their hosts; those that stay go on with what they leave."""
        at_work = self._at_work
        stay: dict[int, Task] = {}
        for task in tasks:
            for host in task.demand.flops:
                others = at_work[host]
                del others[id(task)]
                if others:
                    stay.update(others)
                    continue
                del at_work[host]
                if self._hosts.metered:
                    self._hosts.set_load(now, host, 0.0)
        for task in tasks:  # one that leaves was among those that stay on another's host
            stay.pop(id(task), None)
        if stay:
            self._pace(now, list(stay.values()))

    # -- paces ------------------------------------------------------------------------------------------------------

    def _pace(self, now: float, tasks: list[Task]) -> None:
        """Let tasks go on as fast as they can now, with all those that they meet, directly or not."""
        if not self._sharing:
            for task in tasks:
                self._go_on(now, task, self._seconds_alone(task))
        else:
            tasks = self._neighbours(tasks)
            for task, seconds in zip(tasks, self._fair_seconds(tasks), strict=True):
                self._go_on(now, task, seconds)
        if self._hosts.metered:
            for host in {host: None for task in tasks for host in task.demand.flops}:
                self._set_load(now, host)

    def _seconds_alone(self, task: Task) -> float:
        """Return how long a task takes where it meets no other, inf if it stands still."""
        speed, demand = self._hosts.speed, task.demand
        seconds = task.seconds
        for host, flops in demand.widest.items():
            pace = speed(host)
            seconds = max(seconds, flops / pace if pace else inf)
        for host in demand.ranks:
            pace = speed(host) * self._hosts.cores(host)
            seconds = max(seconds, demand.flops[host] / pace if pace else inf)
        return seconds

    def _fair_seconds(self, tasks: list[Task]) -> list[float]:
        """Return how long each task takes where they meet each other and no others."""
        alone = [self._seconds_alone(task) for task in tasks]
        if len(tasks) == 1:
            return alone
        # What takes no time takes nothing from others.
        some = [place for place, seconds in enumerate(alone) if seconds > 0]
        demands = [tasks[place].demand for place in some]
        bounds = [1.0 / alone[place] for place in some]
        capacity = {
            host: self._hosts.speed(host) * self._hosts.cores(host) for demand in demands for host in demand.flops
        }
        together = alone.copy()
        for place, rate, bound in zip(some, fair_rates(demands, bounds, capacity), bounds, strict=True):
            if rate < bound:
                together[place] = 1.0 / rate if rate > 0 else inf
        return together

    def _go_on(self, now: float, task: Task, lasts: float) -> None:
        if task.entry is not None:
            if lasts == task.lasts:
                return
            self._agenda.cancel(task.entry)
            task.entry = None
        if now > task.since:
            task.done = task.share(now)
            task.since = now
        task.lasts = lasts
        end = now + (1.0 - task.done) * lasts if lasts < inf else inf
        if end < inf:
            task.entry = self._agenda.put(end, PHASE, task)

    def _neighbours(self, tasks: list[Task]) -> list[Task]:
        """Return these tasks and all that they share hosts with, directly or not, in order of their discovery."""
        found = {id(task): task for task in tasks}
        todo = list(tasks)
        seen: set[int] = set()
        while todo:
            for host in todo.pop().demand.flops:
                if host in seen:
                    continue
                seen.add(host)
                for key, other in self._at_work[host].items():
                    if key not in found:
                        found[key] = other
                        todo.append(other)
        return list(found.values())

    def _set_load(self, now: float, host: int) -> None:
        speed = self._hosts.speed(host)
        # What takes no time, or for ever, is no load.
        flops = sum(
            task.demand.flops[host] / task.lasts for task in self._at_work.get(host, {}).values() if task.lasts > 0
        )
        self._hosts.set_load(now, host, flops / speed if speed else 0.0)

"""Bring a Slurm controller into the state of a live cluster."""

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct

from pipistrelle.platforms.naming.hostlists import expanded
from pipistrelle.runs.forecast.jobs import QueuedJob
from pipistrelle.schedulers.slurm.cluster.bits import indices_of
from pipistrelle.schedulers.slurm.cluster.jobs import SlurmJob
from pipistrelle.schedulers.slurm.config.settings import SlurmConfig
from pipistrelle.schedulers.slurm.config.submission import Submission
from pipistrelle.schedulers.slurm.daemon import Daemon
from pipistrelle.schedulers.slurm.nodes.asked import Alloc
from pipistrelle.schedulers.slurm.passes.controller import Controller
from pipistrelle.schedulers.slurm.passes.pinning import chosen_on, even_on, memory_on
from pipistrelle.traces.slurm.state.records import LiveJob, LiveShare


class Situation(Struct, kw_only=True):
    """The state of a live cluster from which a forecast starts.

    Times are in simulated seconds.

    Attributes:
        running, waiting: in the order of submission.
        tried: jobs from ``what_if``, which are submitted at the moment of the forecast.
        down: names of nodes that take no new jobs.
        ended: {(job id, task or None): state}.
        zero: the date of time 0 (s since 1970).
    """

    config: SlurmConfig
    now: int
    zero: float
    running: list[QueuedJob]
    waiting: list[QueuedJob]
    tried: list[QueuedJob]
    down: frozenset[str]
    shares: Sequence[LiveShare] | None
    ended: Mapping[tuple[int, int | None], str]


class Primed(Struct):
    """A controller that has been brought into the state of the live cluster.

    Attributes:
        records: {id that squeue shows: the controller's record of the job or array}.
        refused: {id that squeue shows: why the job was not queued}.
        remarks: how often each kind of input did not fit the machine.
    """

    controller: Controller
    daemon: Daemon
    records: dict[str, SlurmJob]
    refused: dict[str, str]
    remarks: Counter[str]


def primed(situation: Situation) -> Primed:
    """Return a controller in the live cluster's state at the moment of the forecast."""
    config, now = situation.config, situation.now
    controller = Controller(config)
    daemon = Daemon(controller, complete=False)  # expected starts of single passes are not shown
    found = Primed(controller, daemon, {}, {}, Counter())
    machine = controller.machine
    for name in situation.down:
        machine.down |= 1 << machine.index[name]
    _shares(found, situation.shares)
    _ended(controller, situation)
    for entry in situation.running:
        _run(found, entry, situation)
    for entry in situation.waiting:
        _wait(found, entry, situation)
    if not controller.basic:
        _priorities(found, situation)
    for entry in situation.tried:
        job, refused = controller.submit(entry.ids, entry.sub, now, entry.tasks)
        if refused:
            found.refused[entry.shown] = refused
        else:
            found.records[entry.shown] = job
    daemon.request(now)
    daemon.touch(now)
    return found


def _priorities(found: Primed, situation: Situation) -> None:
    """Compute fairshare from the usage in the files.

    Also compute the priorities of jobs whose priority the files lack.
    """
    controller = found.controller
    told = {shown: job.priority for shown, job in found.records.items()}
    controller.share_out()
    controller.set_priorities(situation.now)
    for entry in situation.waiting:
        job = found.records.get(entry.shown)
        if job is not None and entry.live is not None and entry.live.priority is not None:
            job.priority = told[entry.shown]
            job.part_priorities = []


def _shares(found: Primed, shares: Sequence[LiveShare] | None) -> None:
    """Set the recorded usage of each user and account.

    The value is the one that sshare printed.
    """
    accounts = found.controller.accounts
    for one in shares or ():
        at = accounts.by_user.get((one.user, one.account, one.partition), -1) if one.user else -1
        if not one.user:
            at = accounts.by_account.get(one.account, -1)
        if at < 0:
            found.remarks["associations of sshare that the accounting does not have"] += 1
        else:
            accounts.associations[at].usage = one.usage


def _ended(controller: Controller, situation: Situation) -> None:
    """Tell the controller which jobs have ended.

    Queued jobs may depend on them.
    """
    for (number, task), state in situation.ended.items():
        job = SlurmJob(0, Submission(number=number, submit=0.0))
        job.state, job.array_task, job.start = state, task, 1
        controller.by_number.setdefault(number, []).append(job)


def _run(found: Primed, entry: QueuedJob, situation: Situation) -> None:
    """Start a running job in the controller.

    It gets the nodes that it holds in the cluster.
    """
    controller, now = found.controller, situation.now
    live = entry.live
    assert live is not None
    began = now if live.start is None else min(now, int(live.start - situation.zero))
    if live.start is None and live.used is not None:
        began = now - int(live.used)
    job, refused = controller.submit(
        entry.ids, entry.sub, min(began, int(entry.sub.submit)), entry.tasks, accepted=True
    )
    if job.serial not in controller.pending:
        found.refused[entry.shown] = refused
        return
    alloc = _pinned(found, job, live)
    if not alloc:
        del controller.pending[job.serial]
        found.refused[entry.shown] = "it runs on no node of slurm.conf"
        return
    controller.start(job, alloc, began)
    found.records[entry.shown] = job


def _pinned(found: Primed, job: SlurmJob, live: LiveJob) -> Alloc:
    """Return a running job's allocation; whatever the files do not give is chosen."""
    controller = found.controller
    machine = controller.machine
    part = machine.partitions[job.part]
    if not live.node_list:
        found.remarks["running jobs without a list of nodes, for which nodes were chosen"] += 1
        for way in controller.requests.asked(job, part):
            some = controller.selector.now(way, machine.all)
            if some is not None:
                return some
        return {}
    names = expanded(live.node_list, live.place)
    mask = machine.mask_of_names(names)
    if mask.bit_count() < len(names):
        found.remarks["nodes of running jobs that slurm.conf does not have"] += len(names) - mask.bit_count()
    nodes = list(indices_of(mask))
    if not nodes:
        return {}
    if job.whole or part.exclusive:
        return {at: (machine.cpus[at], memory_on(job, machine.cpus[at]), machine.gres[at] or {}) for at in nodes}
    alloc = (
        _told(found, live, mask)
        or chosen_on(controller, job, mask, live.cpus)
        or even_on(job, nodes, live.cpus or job.min_cpus)
    )
    return _fitting(found, alloc)


def _told(found: Primed, live: LiveJob, mask: int) -> Alloc:
    """Return what a running job holds on each of its nodes.

    ``scontrol -d`` printed it. Return {} if the output lacks one of the job's nodes (``mask``).
    """
    alloc: Alloc = {}
    index = found.controller.machine.index
    for share in live.shares:
        for name in expanded(share.nodes, live.place):
            if name in index:
                alloc[index[name]] = (share.cpus, share.memory, dict(share.gres or live.gres))
    return alloc if len(alloc) == mask.bit_count() else {}


def _fitting(found: Primed, alloc: Alloc) -> Alloc:
    """Return an allocation, reduced to what is free on its nodes.

    This concerns CPUs, memory and gres (generic resources).
    """
    machine = found.controller.machine
    fitted: Alloc = {}
    for at, (cpus, memory, gres) in alloc.items():
        free = machine.free_gres[at]
        fitted[at] = (
            max(0, min(cpus, int(machine.free_cpus[at]))),
            max(0, min(memory, int(machine.free_memory[at]))),
            _taken(gres, free),
        )
    if fitted != {at: (cpus, memory, dict(gres)) for at, (cpus, memory, gres) in alloc.items()}:
        found.remarks["running jobs that hold more than their nodes have free"] += 1
    return fitted


def _taken(gres: Mapping[str, int], free: Mapping[str, int]) -> dict[str, int]:
    """Return how much of a job's gres (generic resources) a node can give.

    ``free`` is what is free on the node. The result uses the node's names, such as ``gpu:a100`` for a job's ``gpu``.
    """
    taken: dict[str, int] = {}
    for name, count in gres.items():
        general = name.partition(":")[0]
        left = count
        for own in [name, *(one for one in free if one.partition(":")[0] == general and one != name)]:
            some = max(0, min(left, free.get(own, 0) - taken.get(own, 0)))
            if some:
                taken[own] = taken.get(own, 0) + some
                left -= some
    return taken


def _wait(found: Primed, entry: QueuedJob, situation: Situation) -> None:
    """Queue a waiting job with its priority.

    The time from which its age counts is set, too.
    """
    controller, now, zero = found.controller, situation.now, situation.zero
    live = entry.live
    assert live is not None
    job, refused = controller.submit(entry.ids, entry.sub, int(entry.sub.submit), entry.tasks, accepted=True)
    if job.serial not in controller.pending:
        found.refused[entry.shown] = refused
        return
    found.records[entry.shown] = job
    if live.eligible is not None and not job.depends:
        job.eligible = max(1, int(live.eligible - zero))
        since = live.eligible if live.accrued is None else live.accrued
        job.accrued = 0 if job.eligible > now else max(1, int(since - zero))
    if job.priority == 0:
        job.reason = "DependencyNeverSatisfied" if live.failed else live.reason or "JobHeldUser"
    elif live.priority:
        job.priority = live.priority
        job.part_priorities = []
        controller.next_basic = min(controller.next_basic, live.priority)
    if job.priority:
        job.reason = live.reason or job.reason

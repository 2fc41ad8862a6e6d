"""Play the same jobs to an unmodified slurmctld and to the scheduler ``slurm``, and look at both queues."""

import csv
import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from pipistrelle.platforms.naming.hostlists import expanded
from pipistrelle.protocol.events import SimulationBeginsData
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.connection import InProcess, Listening
from pipistrelle.runs.execution.run import RunOptions, run
from pipistrelle.runs.slurmctld.bridge import EPOCH_S, Bridge
from pipistrelle.runs.slurmctld.virtual_time import NANOSECONDS
from pipistrelle.runs.slurmctld.wire import Launch
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.slurm.policy import SlurmPolicy
from pipistrelle.schedulers.wire.native import ServerAddress, serve_simulation

#: both controllers start that long before time 0 (s), so that their periods have the same phases
LEAD = -4
CONF = """ClusterName=small
SlurmctldHost=head
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=bf_interval=30
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageEnforce=associations,limits,qos
AccountingStorageTRES=gres/gpu
Licenses=tool:4
PriorityType=priority/multifactor
PriorityWeightAge=1000
GresTypes=gpu
NodeName=DEFAULT CPUs=4 CoresPerSocket=4 RealMemory=4000
NodeName=n[1-4] Gres=gpu:2
PartitionName=batch Nodes=ALL Default=YES MaxTime=1-0 DefMemPerCPU=500
"""
ACCOUNTS = """add account bio
add account chem
add user ada Account=bio
add user bob Account=bio
add user cyd Account=chem
"""


class Seen(Struct):
    """What a run showed.

    Attributes:
        starts: {job: start (s)} of the jobs that started.
        refused: the jobs that were refused.
        cpus: {job: {node: CPUs}} of these.
        queue: {job: reason} of the waiting jobs at each time asked for.
    """

    starts: dict[str, float]
    cpus: dict[str, dict[str, int]]
    refused: set[str]
    queue: dict[int, dict[str, str]]


def job(number: int, at: int, run: int, more: str = "", user: str = "ada", limit: str = "10") -> str:
    """Return a submission as a line of a file of events."""
    return (
        f"-dt {at} -e submit_batch_job | -J jobid_{number} -sim-walltime {run} --uid={user} -t {limit} {more} x.job\n"
    )


def played(folder: Path, conf: str, accounts: str, jobs: str, times: Sequence[int], *, real: bool, more: Any) -> Seen:
    """Play jobs to one of the schedulers and return what it showed at ``times`` (s)."""
    (folder / "slurm.conf").write_text(conf)
    (folder / "jobs.events").write_text(jobs)
    name = "real" if real else "model"
    files: dict[str, Any] = {key: str(folder / "slurm.conf") for key in ("platform", "config")}
    if accounts:
        (folder / "accounts").write_text(accounts)
        files["accounting"] = (str(folder / "accounts"),)
    files |= {"workload": (str(folder / "jobs.events"),), "scheduler": "slurmctld" if real else "slurm"}
    if not real:
        files["slurm"] = {"simulation.start": "4", **more}
    spec = RunSpec(**files)
    seen = Seen({}, {}, set(), {})
    out = folder / name
    if real:
        _real(spec, out, times, seen)
    else:
        _model(spec, out, times, seen)
    with (out / "out_jobs.csv").open() as file:
        for row in csv.DictReader(file):
            if row["starting_time"]:
                seen.starts[row["job_id"]] = float(row["starting_time"])
            else:
                seen.refused.add(row["job_id"])
    return seen


def _real(spec: RunSpec, out: Path, times: Sequence[int], seen: Seen) -> None:
    class Watched(Bridge):
        def _begin(self, data: SimulationBeginsData) -> None:
            super()._begin(data)
            for time in times:
                at = (EPOCH_S + time) * NANOSECONDS + NANOSECONDS // 2
                self._later(at - self.slurm.time.now, lambda time=time: self._look(time))  # type: ignore[misc]

        def _look(self, time: int) -> None:
            _, text = self.slurm.command(["squeue", "--noheader", "--array", "--format=%j|%t|%r"])
            rows = [line.split("|") for line in text.splitlines()]
            seen.queue[time] = {name.removeprefix("jobid_"): why for name, state, why in rows if state == "PD"}

        def _started(self, start: Launch) -> None:
            super()._started(start)
            name = self._jobs[start.job_id].id.rpartition("!")[2]
            seen.cpus[name] = dict(zip(expanded(start.nodes, ""), start.cpus, strict=True))

    failure: list[BaseException] = []

    def announce(endpoint: str) -> AbstractContextManager[None]:
        def serve() -> None:
            bridge = Watched(str(spec.config), accounting=spec.accounting, lead=LEAD)
            try:
                serve_simulation(bridge, ServerAddress(endpoint), hello_timeout=30.0, report=lambda text: None)
            except BaseException as error:
                failure.append(error)
            finally:
                bridge.close()

        threading.Thread(target=serve, daemon=True).start()
        return nullcontext()

    try:
        run(spec, RunOptions(connection=Listening(announce=announce), out=out))
    except BaseException:
        if failure:
            raise failure[0] from None
        raise


def _model(spec: RunSpec, out: Path, times: Sequence[int], seen: Seen) -> None:
    with pytest.MonkeyPatch.context() as patch:
        decide = SlurmPolicy.decide
        left = sorted(times)
        last: dict[str, str] = {}

        def watched(policy: SlurmPolicy, view: View) -> None:
            while left and left[0] + 0.5 < view.now:
                seen.queue[left.pop(0)] = dict(last)
            decide(policy, view)
            last.clear()
            for one in policy.controller.pending.values():
                last.update(dict.fromkeys((name.rpartition("!")[2] for name in one.ids), one.reason))
            names = policy.controller.machine.names
            for _, _, one in policy.controller.running:
                seen.cpus[one.ids[0].rpartition("!")[2]] = {names[at]: cpus for at, (cpus, _, _) in one.alloc.items()}

        patch.setattr(SlurmPolicy, "decide", watched)
        run(spec, RunOptions(connection=InProcess(), out=out))
        for time in left:
            seen.queue[time] = dict(last)


def differences(real: Seen, model: Seen) -> list[str]:
    """Return what differs between the real controller and the model, each as a line."""
    found = []
    for name in sorted(real.starts.keys() | model.starts.keys()):
        one, other = real.starts.get(name), model.starts.get(name)
        if one is None or other is None or abs(int(one) - int(other)) > 3:
            found.append(f"job {name} starts at {one}, in the model at {other}")
        elif real.cpus.get(name) != model.cpus.get(name):
            found.append(f"job {name} gets {real.cpus.get(name)}, in the model {model.cpus.get(name)}")
    if real.refused != model.refused:
        found.append(f"refused {sorted(real.refused)}, by the model {sorted(model.refused)}")
    for time, reasons in real.queue.items():
        mine = model.queue.get(time, {})
        for name in sorted(reasons.keys() | mine.keys()):
            # The model notices earlier that nothing can start a job.
            ended = name in real.refused & model.refused and any(name in some for some in model.queue.values())
            if reasons.get(name) != mine.get(name) and not ended:
                found.append(f"at {time} job {name}: {reasons.get(name)}, in the model {mine.get(name)}")
    return found


def both(
    folder: Path,
    jobs: str,
    accounts: str = "",
    conf: str = CONF,
    times: Sequence[int] = (),
    slurm: Mapping[str, str] | None = None,
) -> Mapping[str, Seen]:
    """Play jobs to both; return what each showed."""
    return {
        name: played(folder, conf, accounts, jobs, times, real=name == "real", more=slurm or {})
        for name in ("real", "model")
    }

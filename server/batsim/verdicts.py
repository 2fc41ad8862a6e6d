"""Handling of the decisions that exist only in the batsim dialect."""

from collections.abc import Iterable
from math import inf
from typing import Final

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.protocol.base.log import logger
from pipistrelle.protocol.batsim.codec import ROUNDING
from pipistrelle.protocol.batsim.messages import (
    Answer,
    AnswerServer,
    BatsimExecuteJob,
    BatsimRegisterJob,
    ChangeJobState,
    NotifyServer,
    QueryServer,
    RegisterProfile,
    SetResourceState,
)
from pipistrelle.protocol.decisions import ExecuteJob, KillJob
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.protocol.units.text import NodeSetError
from pipistrelle.server.batsim.registry import Registry
from pipistrelle.server.engine.clockwork import Clockwork
from pipistrelle.server.engine.jobs import Job, Step
from pipistrelle.server.engine.lives import JobLives
from pipistrelle.server.engine.verdicts import Verdicts
from pipistrelle.server.errors import Illegal
from pipistrelle.server.hosts.hosts import Hosts
from pipistrelle.server.hosts.switching import Switchboard
from pipistrelle.server.setup.setup import BatsimOptions

#: {final state that a scheduler may declare for a running job: the step to that state}
_DECLARED: Final[dict[str, Step]] = {
    "COMPLETED_SUCCESSFULLY": "finish",
    "COMPLETED_FAILED": "fail",
    "COMPLETED_WALLTIME_REACHED": "reach_walltime",
    "COMPLETED_KILLED": "kill",
}


class BatsimVerdicts(Verdicts):
    """The engine part that carries out decisions by Batsim's rules.

    Some of these decisions exist only in Batsim's dialect.
    """

    _kept = (*Verdicts._kept, "_asked_to_die")

    def __init__(
        self,
        clockwork: Clockwork,
        lives: JobLives,
        prefixes: Iterable[str],
        registry: Registry,
        options: BatsimOptions,
        switchboard: Switchboard,
        hosts: Hosts | None,
    ) -> None:
        super().__init__(clockwork, lives, prefixes)
        self._registry = registry
        self._options = options
        self._switchboard = switchboard
        self._hosts = hosts
        self._asked_to_die: set[str] = set()
        self.table |= {
            BatsimExecuteJob: self._execute_mapped,
            KillJob: self._kill,
            SetResourceState: self._set_resource_state,
            RegisterProfile: self._register_profile,
            BatsimRegisterJob: self._register_job,
            ChangeJobState: self._change_job_state,
            NotifyServer: self._notify,
            QueryServer: self._query,
            AnswerServer: self._answer,
        }

    def _execute_mapped(self, decision: BatsimExecuteJob) -> None:
        data = decision.data
        job = self._cluster.waiting.get(data.job_id)
        if job is not None and data.mapping is not None:
            job.mapping = _mapping(job, data.mapping, data.alloc)
        try:
            self._execute(ExecuteJob(decision.timestamp, data))
        except Illegal:
            if job is not None:
                job.mapping = None
            raise

    def _kill(self, decision: KillJob) -> None:
        """Kill jobs; like Batsim, ignore jobs with an earlier KILL_JOB."""
        if not decision.data.job_ids:
            raise Illegal("malformed", "'job_ids' names no job")
        job_ids = tuple(name for name in dict.fromkeys(decision.data.job_ids) if name not in self._asked_to_die)
        if job_ids:
            self._end_early(job_ids)
            self._asked_to_die.update(job_ids)

    def _set_resource_state(self, decision: SetResourceState) -> None:
        self._switchboard.request(self._clockwork.now, decision.data.resources, decision.data.state)

    def _register_profile(self, decision: RegisterProfile) -> None:
        self._require_dynamic("REGISTER_PROFILE")
        data = decision.data
        try:
            new = self._registry.add_profile(data.workload_name, data.profile_name, bytes(data.profile))
        except PipistrelleError as error:
            raise Illegal("malformed", str(error)) from None
        if not new:
            logger().debug("profile {}!{} is there already: the old one is kept", data.workload_name, data.profile_name)

    def _register_job(self, decision: BatsimRegisterJob) -> None:
        self._require_dynamic("REGISTER_JOB")
        now, data = self._clockwork.now, decision.data
        prefix, mark, name = data.job_id.partition("!")
        if not (prefix and mark and name):
            raise Illegal("malformed", f"'{data.job_id}' is no job id: WORKLOAD!NAME is expected")
        if self._cluster.knows(data.job_id) or self._registry.has_job(prefix, name):
            raise Illegal("duplicate_job", f"a job {data.job_id} exists already")
        try:
            job = self._registry.make_job(data.job_id, bytes(data.job), data.profile and bytes(data.profile))
        except PipistrelleError as error:
            raise Illegal("malformed", str(error)) from None
        if job.submit > now + ROUNDING:
            raise Illegal("malformed", f"the subtime of {data.job_id} is {job.submit!r}; it is {now!r}")
        self._count_registered()
        job.submit = min(job.submit, now)
        self._lives.submit(job, announce=self._options.acknowledge_dynamic_jobs)

    def _require_dynamic(self, what: str) -> None:
        if not self._options.dynamic_jobs:
            raise Illegal("feature_off", f"{what} needs --enable-dynamic-jobs")

    def _change_job_state(self, decision: ChangeJobState) -> None:
        data, cluster, now = decision.data, self._cluster, self._clockwork.now
        waiting, running = cluster.waiting.get(data.job_id), cluster.running.get(data.job_id)
        if waiting is not None and data.job_state == "RUNNING":
            if waiting.work is not None:  # the job runs on none of the machine's hosts
                waiting.work, waiting.runtime = None, inf
            cluster.run_elsewhere(now, waiting)
        elif waiting is not None and data.job_state == "REJECTED":
            cluster.reject(now, waiting)
        elif running is not None and data.job_state in _DECLARED:
            self._lives.end(running, _DECLARED[data.job_state], announce=False)
        elif waiting is None and running is None and not cluster.knows(data.job_id):
            raise Illegal("unknown_job", f"no job {data.job_id} was submitted")
        else:
            state = "SUBMITTED" if waiting is not None else "RUNNING" if running is not None else "its last one"
            raise Illegal(
                "wrong_state",
                f"the state of {data.job_id} is {state}; it cannot become '{data.job_state}' "
                "(SUBMITTED: RUNNING or REJECTED; RUNNING: COMPLETED_...)",
            )

    def _notify(self, decision: NotifyServer) -> None:
        kind = decision.data.get("type")
        if kind not in ("registration_finished", "continue_registration"):
            raise Illegal("malformed", f"NOTIFY '{kind}' is not known: registration_finished or continue_registration")
        self._require_dynamic(f"NOTIFY {kind}")
        self._clockwork.registering = kind == "continue_registration"

    def _query(self, decision: QueryServer) -> None:
        requests = decision.data.get("requests")
        if not isinstance(requests, dict) or list(requests) != ["consumed_energy"]:
            raise Illegal("malformed", f'QUERY needs {{"requests": {{"consumed_energy": {{}}}}}}, not {requests!r}')
        if self._hosts is None or not self._options.energy:
            raise Illegal("feature_off", "QUERY consumed_energy needs --energy")
        joules = self._hosts.energy(self._clockwork.now)
        self._clockwork.tell(Answer(self._clockwork.now, {"consumed_energy": joules}))

    @staticmethod
    def _answer(decision: AnswerServer) -> None:
        raise Illegal("wrong_state", "ANSWER answers no question: the server has not asked any")


def _mapping(job: Job, mapping: dict[str, str], alloc: str) -> tuple[int, ...]:
    """Return, for each executor of a job, the index of its host in the allocation.

    Raise `Illegal` if ``mapping`` is not {executor: index of a host in ``alloc``} for all executors of the job.
    """
    try:
        places = {int(executor): int(place) for executor, place in mapping.items()}
        size = len(NodeSet.parse(alloc))
    except (ValueError, NodeSetError) as error:
        raise Illegal("bad_allocation", f"the 'mapping' of {job.id} cannot be read: {error}") from None
    if sorted(places) != list(range(job.size)) or not all(0 <= place < size for place in places.values()):
        raise Illegal(
            "bad_allocation",
            f"the 'mapping' of {job.id} must give each of its executors 0-{job.size - 1} a place in 'alloc', "
            f"0-{size - 1}: {mapping}",
        )
    return tuple(places[executor] for executor in range(job.size))

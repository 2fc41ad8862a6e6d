"""The profiles and jobs of a run.

They come from the workloads, or the scheduler registers them.
"""

from collections import Counter, deque
from collections.abc import Iterable
from math import inf, isnan, nextafter
from typing import Any

import msgspec

from pipistrelle.protocol.base.errors import PipistrelleError, quoted
from pipistrelle.server.batsim.jobs import ForwardedJob
from pipistrelle.server.engine.agenda import Part
from pipistrelle.server.engine.clockwork import Clockwork
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.setup.workload_jobs import is_work
from pipistrelle.traces.batsim.profile_reader import closest, parse_profile
from pipistrelle.traces.batsim.text import profile_texts, with_members
from pipistrelle.traces.batsim.workload import job_of_json
from pipistrelle.traces.profiles import Profile, communicates, outcome, require_ranks, runtime_of
from pipistrelle.traces.workload import Workload


class _Named(msgspec.Struct):
    id: int | str


_NAMED = msgspec.json.Decoder(_Named)


class RegistryError(PipistrelleError):
    """A job or profile cannot be registered."""


class Registry(Part, Observer):
    """Profiles by workload and name, and the names of the workloads' jobs.

    Without ``reuse``, a job that the scheduler registers may use a workload's profile only while another job uses it.
    As in Batsim, an ended job uses its profile until the notice of its end is sent. One reply can thus kill a job and
    register another with its profile.
    """

    _kept = ("_users", "_ended", "_released")

    def __init__(
        self,
        clockwork: Clockwork,
        workloads: dict[str, Workload],
        *,
        forward: bool,
        reuse: bool,
        has_hosts: bool,
        can_send: bool,
    ) -> None:
        self._clockwork = clockwork
        self._workloads = workloads
        self._forward = forward
        self._reuse = reuse
        self._has_hosts = has_hosts
        self._can_send = can_send
        self._profiles: dict[str, dict[str, Profile]] = {}
        self._texts: dict[str, dict[str, bytes]] = {}
        self._registered: list[tuple[str, str]] = []
        self._names: dict[str, frozenset[str]] = {}
        #: {workload: {profile: number of jobs with this profile that have not ended}}
        self._users: dict[str, Counter[str]] = {}
        #: (last notice before the end, workload, profile) of ended jobs
        self._ended: deque[tuple[int, str, str]] = deque()
        #: {workload: {profile: number of jobs that ended before the workload's users were counted}}
        self._released: dict[str, Counter[str]] = {}

    def state(self) -> dict[str, Any]:
        """Return the registered profiles, and how many jobs use each profile."""
        registered = [[prefix, name, self._texts[prefix][name].decode()] for prefix, name in self._registered]
        return {**super().state(), "registered": registered}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the profiles, and which jobs use each, from a saved state."""
        for prefix, name, text in state["registered"]:
            self.add_profile(prefix, name, text.encode())
        super().restore(state)

    def profile(self, prefix: str, name: str) -> Profile:
        """Return a profile of a workload; it must exist."""
        return self._known(prefix)[0][name]

    def has_job(self, prefix: str, name: str) -> bool:
        """Return whether a workload has a job of this name, submitted or not."""
        workload = self._workloads.get(prefix)
        if workload is None:
            return False
        if prefix not in self._names:
            self._names[prefix] = frozenset(workload.ids)
        return name in self._names[prefix]

    def add_profile(self, prefix: str, name: str, text: bytes) -> bool:
        """Add a profile to a workload; return False if the profile exists already.

        The workload may be new.

        Raises PipistrelleError if the profile's JSON is invalid or the server cannot run the profile.
        """
        profiles, texts = self._known(prefix)
        if name in profiles:
            return False
        profile = parse_profile(name, text, profiles, f"profile {prefix}!{name}")
        self._check(profile, f"profile {prefix}!{name}")
        profiles[name] = profile
        texts[name] = text
        self._registered.append((prefix, name))
        return True

    def make_job(self, job_id: str, text: bytes, profile_text: bytes | None) -> ForwardedJob:
        """Create the job ``PREFIX!NAME`` from its JSON.

        The job then counts as a user of its profile. Raises PipistrelleError if the JSON is invalid, its ``id`` is not
        ``job_id``, or the profile is not available.
        """
        prefix, _, name = job_id.partition("!")
        job = job_of_json(text, f"job {job_id}")
        own = str(_NAMED.decode(text).id)
        if own not in (name, job_id):
            raise RegistryError("job_id and job.id name two jobs", expected=quoted(job_id), found=quoted(own))
        if profile_text is not None:
            self.add_profile(prefix, job.profile, profile_text)
        profiles, texts = self._known(prefix)
        profile = profiles.get(job.profile)
        if profile is None:
            raise RegistryError(
                f"workload {quoted(prefix)} has no profile {quoted(job.profile)}",
                where=f"job {job_id}",
                hint=f"Register it first. {closest(job.profile, list(profiles))}",
            )
        self._release()
        users = self._users_of(prefix)
        if not self._reuse and prefix in self._workloads and not users[job.profile]:
            raise RegistryError(
                f"profile {quoted(job.profile)} of workload {quoted(prefix)} is gone: no job has it any more",
                where=f"job {job_id}",
                hint="Allow profiles to be used again with --enable-profile-reuse.",
            )
        require_ranks(profile, job.size, job=name, where=f"job {job_id}")
        users[job.profile] += 1
        done, code = outcome(profile)
        runtime = runtime_of(profile)
        if runtime == job.walltime:
            runtime = nextafter(runtime, inf)  # as in a workload: such a job is killed at its walltime
        return ForwardedJob(
            job_id,
            job.submit,
            job.size,
            job.walltime,
            runtime,
            job.profile,
            work=done if is_work(done, runtime, has_hosts=self._has_hosts) else None,
            return_code=code,
            description=with_members(text, id=job_id),
            forwarded=texts[job.profile] if self._forward else None,
        )

    def ended(self, now: float, job: Job) -> None:
        """Stop counting an ended job as a user of its profile, from the next notice on."""
        self._release()
        self._ended.append((self._clockwork.seq, job.id.partition("!")[0], job.profile))

    def _release(self) -> None:
        """Stop counting ended jobs as users of their profiles.

        This happens once the notices about their ends are sent.
        """
        told = self._clockwork.seq
        while self._ended and self._ended[0][0] < told:
            _, prefix, profile = self._ended.popleft()
            users = self._users.get(prefix)
            if users is None:
                self._released.setdefault(prefix, Counter())[profile] += 1
            else:
                users[profile] -= 1

    def _known(self, prefix: str) -> tuple[dict[str, Profile], dict[str, bytes]]:
        if prefix not in self._profiles:
            workload = self._workloads.get(prefix)
            self._texts[prefix] = {} if workload is None else profile_texts(workload)
            if workload is None:
                self._profiles[prefix] = {}
            elif workload.table is not None:
                self._profiles[prefix] = dict(workload.table)
            else:
                self._profiles[prefix] = {
                    name: parse_profile(name, text, {}, name) for name, text in self._texts[prefix].items()
                }
        return self._profiles[prefix], self._texts[prefix]

    def _users_of(self, prefix: str) -> Counter[str]:
        if prefix not in self._users:
            workload = self._workloads.get(prefix)
            names: Iterable[str] = () if workload is None else map(workload.profile_of, range(len(workload)))
            users = Counter(names)
            users.subtract(self._released.pop(prefix, Counter()))
            self._users[prefix] = users
        return self._users[prefix]

    def _check(self, profile: Profile, where: str) -> None:
        if isnan(runtime_of(profile)) and not self._has_hosts:
            raise RegistryError(
                "the profile computes, but the platform gives no speed of its nodes",
                where=where,
                hint="Use a platform in SimGrid's XML.",
            )
        if communicates(profile) and not self._can_send:
            raise RegistryError(
                "the profile sends bytes, but no bandwidth is given", where=where, hint="Give one with --bandwidth."
            )

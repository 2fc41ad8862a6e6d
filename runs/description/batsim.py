"""Batsim-compatible runs: their hosts, events, options and built-in scheduler."""

import dataclasses
from collections.abc import Sequence
from contextlib import suppress
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from pipistrelle.platforms.simgrid.platform_file import SimGridPlatform
from pipistrelle.protocol.base.errors import InputError, PipistrelleError, printable
from pipistrelle.protocol.base.log import logger
from pipistrelle.protocol.batsim.codec import encode_notice, encode_reply
from pipistrelle.protocol.decisions import ExecuteJob, ExecuteJobData
from pipistrelle.protocol.events import JobSubmitted
from pipistrelle.protocol.fields import package_version
from pipistrelle.protocol.messages import HelloData, Notice, Reply, WelcomeData
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.runs.description.spec import BatsimSpec, Decides, RunSpec, decided
from pipistrelle.runs.inputs.named import load_hosts, require_text
from pipistrelle.server.setup.setup import BatsimOptions, Setup
from pipistrelle.server.transport.in_process import Transport
from pipistrelle.traces.batsim.events import ExternalEvent, read_events
from pipistrelle.traces.files import read_text
from pipistrelle.traces.workload import Workload


def load_batsim_setup(spec: RunSpec, way: BatsimSpec, workloads: Sequence[Workload]) -> Setup:
    """Return the setup of a Batsim-compatible run.

    Args:
        spec: the run's description.
        way: its Batsim options. With ``no_sched``, as in Batsim, all submit times become 0, so every job starts at time
            0, and jobs may share hosts.
        workloads: the jobs, already read.

    Raises:
        PipistrelleError: an input is wrong, or the inputs do not fit together.
    """
    _check(spec, way)
    assert spec.platform is not None, "just checked"
    roles = parse_roles(way.add_role_to_hosts)
    machine = load_hosts(spec.platform, master=way.master_host, roles=roles, energy=way.energy)
    most = _most_machines(way, workloads)
    if most is not None:
        machine = machine.limited(most)
    events = load_events(way.events, unknown=way.forward_unknown_events)
    _check_events(events, machine)
    if way.no_sched:
        workloads = [_at_once(workload, f"w{number}", machine) for number, workload in enumerate(workloads)]
    told = way.sched_cfg if way.sched_cfg_file is None else read_text(Path(way.sched_cfg_file))
    options = BatsimOptions(
        dynamic_jobs=way.enable_dynamic_jobs,
        acknowledge_dynamic_jobs=way.acknowledge_dynamic_jobs,
        profile_reuse=way.enable_profile_reuse,
        forward_profiles=way.forward_profiles_on_submission,
        # Like Batsim, forward no events if there are no events files.
        forward_unknown_events=way.forward_unknown_events and bool(way.events),
        compute_sharing=way.enable_compute_sharing or way.no_sched,
        energy=way.energy,
        sched_config=told or "",
        events=events,
        bandwidth=way.bandwidth,
    )
    # Batsim's protocol cannot report an illegal decision, so an illegal decision ends the run.
    return Setup.of(machine, *workloads, strict=True, batsim=options)


def _check(spec: RunSpec, way: BatsimSpec) -> None:
    if spec.platform is None:
        raise InputError("a Batsim-compatible run names no platform", expected="a file in SimGrid's XML")
    if spec.dialect != "batsim":
        raise InputError("a Batsim-compatible run needs Batsim's dialect", expected="batsim", found=spec.dialect)
    if way.sched_cfg is not None and way.sched_cfg_file is not None:
        raise InputError("--sched-cfg and --sched-cfg-file exclude each other")
    if way.enable_profile_reuse and not way.enable_dynamic_jobs:
        raise InputError("--enable-profile-reuse requires --enable-dynamic-jobs")
    if spec.node_table is not None:
        raise InputError("a Batsim-compatible run does not support this key", found="node-table")
    if spec.scale_platform is not None:
        raise InputError(
            "a Batsim-compatible run does not support this key", found="scale-platform", hint="See --mmax."
        )
    if spec.partition_pools:
        raise InputError("a Batsim-compatible run has hosts, not pools", found="partition-pools")
    happens = (name for name, kind in decided().items() if kind in (Decides.EVENTS, Decides.SEED))
    given = next((name for name in happens if getattr(spec, name) != getattr(RunSpec(), name)), None)
    if given is not None:
        raise InputError(
            "nodes do not fail in a Batsim-compatible run", found=given.replace("_", "-"), hint="Use an events file."
        )


def parse_roles(texts: Sequence[str]) -> dict[str, str]:
    """Parse texts such as ``h1,h2:storage`` into {host: role}, or raise InputError."""
    roles: dict[str, str] = {}
    for text in texts:
        hosts, colon, role = text.partition(":")
        names = hosts.split(",")
        if not colon or not role or ":" in role or not all(names):
            raise InputError(
                "the role cannot be read",
                where="--add-role-to-hosts",
                expected="HOST,HOST:ROLE",
                found=f"'{text}'",
                hint="For example: -r host1,host2:storage.",
            )
        roles.update(dict.fromkeys(names, role))
    return roles


def load_events(names: Sequence[str], *, unknown: bool) -> tuple[ExternalEvent, ...]:
    """Return the events of Batsim's events files, by time, then in file order.

    Args:
        unknown: also accept events of unknown types.

    Raises:
        PipistrelleError: a file is unreadable or wrong.
    """
    events: list[ExternalEvent] = []
    for name in names:
        require_text(name)
        events.extend(read_events(name, unknown=unknown))
    return tuple(sorted(events, key=attrgetter("timestamp")))


def _most_machines(way: BatsimSpec, workloads: Sequence[Workload]) -> int | None:
    limits = [way.mmax] if way.mmax > 0 else []
    if way.mmax_workload and workloads:
        sizes = [workload.machine_size for workload in workloads]
        for workload, size in zip(workloads, sizes, strict=True):
            if size is None:
                raise InputError(
                    "the workload does not give its number of hosts",
                    where=workload.source,
                    expected="the field nb_res",
                    hint="Add it, or use --mmax NUMBER instead of --mmax-workload.",
                )
        limits.append(max(size for size in sizes if size is not None))
    return min(limits, default=None)


def _check_events(events: Sequence[ExternalEvent], machine: SimGridPlatform) -> None:
    last = len(machine.hosts) - 1
    for event in events:
        if event.resources and NodeSet.parse(event.resources).last > last:
            raise InputError(
                "an event names hosts that the platform does not have",
                where=f"event {event.type} at {event.timestamp!r} s",
                expected=f"hosts 0 to {last}",
                found=event.resources,
                hint="Correct the event, or the number of hosts (--mmax, --mmax-workload).",
            )


def _at_once(workload: Workload, prefix: str, machine: SimGridPlatform) -> Workload:
    too_large = np.flatnonzero(workload.size > len(machine.hosts))
    if too_large.size:
        row = int(too_large[0])
        raise InputError(
            f"job {prefix}!{workload.ids[row]} is larger than the machine, and there is no scheduler to reject it",
            where=workload.source,
            expected=f"at most {len(machine.hosts)} hosts",
            found=str(int(workload.size[row])),
            hint="Remove the job, or run with a scheduler.",
        )
    return dataclasses.replace(workload, submit=np.zeros(len(workload)))


class StartAtOnce:
    """The stand-in for a scheduler with ``--no-sched``, which starts each job at once.

    A job of n hosts starts when it is submitted, on hosts 0 to n - 1.
    """

    def hello(self) -> HelloData:
        """Return a HELLO message; its scheduler name appears in the summary."""
        return HelloData("no scheduler", package_version())

    def welcome(self, data: WelcomeData) -> None:
        """Do nothing with the server's WELCOME, because no feature was requested."""

    def answer(self, notice: Notice) -> Reply:
        """Return a reply that starts all jobs submitted in the notice."""
        starts = [
            ExecuteJob(notice.now, ExecuteJobData(event.data.job_id, str(NodeSet.interval(0, event.data.job.res - 1))))
            for event in notice.events
            if isinstance(event, JobSubmitted)
        ]
        return Reply(notice.seq, notice.now, starts)

    def state(self) -> dict[str, Any]:
        """Return an empty state, because this scheduler stores nothing between notices."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Do nothing, because there is no state to restore."""


class LoggedTransport:
    """A wrapper around a transport that logs each message in Batsim's format."""

    def __init__(self, transport: Transport) -> None:
        self._transport = self.behind = transport
        self.apart = transport.apart

    def greet(self, run_id: str, server: str) -> tuple[HelloData, WelcomeData]:
        """Wait until a scheduler connects; return both greetings."""
        return self._transport.greet(run_id, server)

    def send(self, notice: Notice) -> None:
        """Log and send a notice."""
        logger().info("sends {}", printable(encode_notice(notice).decode()))
        self._transport.send(notice)

    def receive(self) -> Reply:
        """Log and return the reply."""
        reply = self._transport.receive()
        logger().info("received {}", printable(_reply_text(reply)))
        return reply

    def farewell(self, notice: Notice) -> None:
        """Log and send the last notice."""
        with suppress(PipistrelleError):  # if the notice cannot be encoded, it is not sent either
            logger().info("sends {}", printable(encode_notice(notice).decode()))
        self._transport.farewell(notice)

    def close(self) -> None:
        """Close the wrapped transport."""
        self._transport.close()


def _reply_text(reply: Reply) -> str:
    try:
        return encode_reply(reply).decode()
    except PipistrelleError:  # the reply contains an invalid decision, which the protocol cannot express
        return repr(reply)

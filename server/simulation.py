"""One whole run: platform and workload in, a scheduler at the other end of a transport, figures and files out."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from typing import Any, Final

import msgspec

from pipistrelle.platforms.description import Platform
from pipistrelle.protocol.events import PlatformInfo, PoolInfo, SimulationBeginsData
from pipistrelle.protocol.fields import PROTOCOL_VERSION
from pipistrelle.protocol.messages import HelloData, WelcomeData
from pipistrelle.protocol.version import package_version
from pipistrelle.server.deferred import Deferred
from pipistrelle.server.engine import Engine
from pipistrelle.server.errors import Interrupted, OutputFailed, RunError
from pipistrelle.server.jobs import jobs_of
from pipistrelle.server.loop import LoopTimes, give_up, run
from pipistrelle.server.metrics import Metrics, Summary
from pipistrelle.server.observers import Observer
from pipistrelle.server.outputs import schedule_csv, to_json, write_output
from pipistrelle.server.recorder import Recorder
from pipistrelle.server.transport import Transport
from pipistrelle.traces.clean import clean
from pipistrelle.traces.workload import Workload

#: prefix of the ids of the (first) workload's jobs
WORKLOAD_PREFIX: Final = "w0"
#: every output's name begins with this, as with Batsim's ``-e DIR/out``
OUTPUT_PREFIX: Final = "out_"
#: names of all the outputs
OUTPUT_FILES: Final = tuple(
    f"{OUTPUT_PREFIX}{name}"
    for name in ("config.json", "jobs.csv", "machine_states.csv", "decisions.csv", "schedule.csv", "summary.json")
)


@dataclass(frozen=True, slots=True)
class Setup:
    """What a run needs to know before a scheduler is there.

    ``workload`` holds the jobs that can run on ``platform``, ``dropped`` the counts of those that cannot, by reason.
    """

    platform: Platform
    workload: Workload
    dropped: dict[str, int]
    strict: bool = False

    @classmethod
    def of(cls, platform: Platform, workload: Workload, *, strict: bool = False) -> "Setup":
        """Return the setup of a trace as it was read: jobs that cannot run are dropped and counted."""
        kept, dropped = clean(workload, platform.units)
        return cls(platform, kept, dropped, strict)


@dataclass(frozen=True, slots=True)
class Result:
    """What came out; ``failure`` is what ended the run early, None if nothing did."""

    summary: Summary
    times: LoopTimes
    scheduler: HelloData
    failure: RunError | None


def simulate(
    setup: Setup,
    transport: Transport,
    *,
    clock: Callable[[], float],
    out: Path | None = None,
    observers: Sequence[Observer] = (),
) -> Result:
    """Run a simulation to its end, whatever the end is, and write its outputs.

    Parameters
    ----------
    transport
        leads to the scheduler; the caller closes it.
    clock
        seconds of a monotonic wall clock, for the times in the result only.
    out
        existing folder for the outputs; None for none.

    Raises
    ------
    PipistrelleError
        when no scheduler came: nothing was begun then, and nothing written.
    """
    package = package_version()
    config = describe_run(setup)
    digest = hashlib.sha256(msgspec.json.encode(config)).hexdigest()[:16]
    hello, welcome = transport.greet(digest, f"pipistrelle {package}")
    metrics = Metrics(setup.dropped)
    watching: list[Observer] = [metrics, *observers]
    if out is not None:
        watching.append(Recorder(str(out / OUTPUT_PREFIX)))
    deferred = Deferred(watching)
    engine = Engine(
        begins_of(setup),
        jobs_of(setup.workload, WORKLOAD_PREFIX),
        features=welcome.features,
        strict=setup.strict,
        observers=[deferred],
    )
    times = LoopTimes()
    failure: RunError | None = None
    try:
        if out is not None:
            text = to_json(_whole_config(config, digest, hello, welcome))
            try:
                write_output(out / f"{OUTPUT_PREFIX}config.json", text)
            except OutputFailed as error:
                give_up(engine, transport, error)
        run(engine, transport, clock, times, deferred.relieve)
    except RunError as error:
        failure = error
    except KeyboardInterrupt:  # a second one, while the scheduler was being told of the first
        failure = Interrupted("interrupted again", where=f"simulated time {engine.now!r}")
    summary = metrics.summary()
    if out is not None:
        try:
            write_output(out / f"{OUTPUT_PREFIX}schedule.csv", schedule_csv(summary, package))
            write_output(out / f"{OUTPUT_PREFIX}summary.json", to_json(summary))
        except OutputFailed as error:
            failure = failure or error
    return Result(summary, times, hello, failure)


def begins_of(setup: Setup) -> SimulationBeginsData:
    """Return what a scheduler is told first."""
    pools = [
        PoolInfo(
            name=group.pool,
            nodes=group.nodes,
            units=group.units,
            units_per_node=group.units_per_node,
            unit=group.unit,
            properties=group.properties,
        )
        for group in setup.platform.groups
    ]
    return SimulationBeginsData(
        nb_resources=setup.platform.units,
        platform=PlatformInfo(setup.platform.name, tuple(pools)),
        workloads={WORKLOAD_PREFIX: setup.workload.name},
        config={"strict": setup.strict},
    )


def describe_run(setup: Setup) -> dict[str, Any]:
    """Return all that decides a run's result, apart from the scheduler: JSON values only."""
    workload = setup.workload
    return {
        "platform": msgspec.to_builtins(setup.platform),
        "workload": {
            "prefix": WORKLOAD_PREFIX,
            "name": workload.name,
            "source": workload.source,
            "jobs": len(workload),
            "dropped": setup.dropped,
            "sha256": _workload_digest(workload),
        },
        "strict": setup.strict,
    }


def _whole_config(config: dict[str, Any], run_id: str, hello: HelloData, welcome: WelcomeData) -> dict[str, Any]:
    return {
        "run_id": run_id,
        **config,
        "scheduler": {"name": hello.name, "version": hello.version, "features": list(welcome.features)},
        "versions": {
            "pipistrelle": package_version(),
            "protocol": PROTOCOL_VERSION,
            "python": python_version(),
            "msgspec": version("msgspec"),
            "numpy": version("numpy"),
        },
    }


def _workload_digest(workload: Workload) -> str:
    """Return a digest of what the simulation takes from a workload."""
    digest = hashlib.sha256("\n".join(workload.ids).encode())
    for column in (workload.submit, workload.size, workload.walltime, workload.runtime):
        digest.update(column.astype(column.dtype.newbyteorder("<")).tobytes())
    if workload.profiles is not None:
        digest.update("\n".join(workload.profiles).encode())
    return digest.hexdigest()

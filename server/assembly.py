"""Builds the engine of a run, with the parts that this run needs and no others."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pipistrelle.protocol.fields import Feature
from pipistrelle.server.begin import begins_of
from pipistrelle.server.engine.dependencies import Dependencies
from pipistrelle.server.engine.engine import Engine
from pipistrelle.server.engine.jobs import jobs_of
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.engine.overheads import Overheads
from pipistrelle.server.setup import Setup

if TYPE_CHECKING:
    from pipistrelle.server.hosts.hosts import Hosts


def make_engine(
    setup: Setup,
    features: Sequence[Feature],
    observer: Observer,
    metered: "Callable[[Hosts], Observer | None] | None" = None,
) -> Engine:
    """Return the engine of a run.

    Parameters
    ----------
    setup
        what runs where.
    features
        the optional parts of the native protocol that were agreed on.
    observer
        told of all that happens, perhaps late.
    metered
        makes what is told of energy, at once, if it is metered.

    Raises
    ------
    PipistrelleError
        when the hosts cannot do what is wanted of them.
    """
    dependencies = Dependencies(setup.conditions) if setup.conditions else None
    if setup.batsim is None:
        engine = Engine(
            begins_of(setup),
            jobs_of(
                setup.workloads["w0"],
                "w0",
                has_hosts=setup.machine is not None,
                labelled="labels" in features or bool(setup.platform.classes),
                resiliences=setup.resiliences,
            ),
            features=features,
            strict=setup.strict,
            observers=[observer] if dependencies is None else [dependencies, observer],
        )
        if setup.machine is not None and setup.has_work:
            from pipistrelle.server.hosts.executor import Executor
            from pipistrelle.server.hosts.hosts import Hosts
            from pipistrelle.server.hosts.working import Working

            Working(engine, Executor(Hosts(setup.machine), engine.agenda), detailed=False)
        engine.overheads = Overheads.where_there_are(setup.platform)
        if setup.reliability is not None:
            from pipistrelle.server.outages.failures import Tells, let_fail

            aware = "failures" in features
            tells: Tells = "reasons" if aware else "nothing"
            let_fail(engine, setup.platform, setup.reliability, tells=tells, holds=not aware)
        if dependencies is not None:
            dependencies.attach(engine)
        return engine
    from pipistrelle.server.batsim.engine import batsim_engine  # most runs start without it

    return batsim_engine(setup, setup.batsim, observer, metered, dependencies)

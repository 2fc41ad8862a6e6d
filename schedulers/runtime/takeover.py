"""Read the past of a run, for a scheduler that takes the run over.

Source: SPEC.md, "Taking over".
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from pipistrelle.protocol.base.errors import RemoteProtocolError
from pipistrelle.protocol.events import Event, JobCompleted, JobStarted, JobSubmitted
from pipistrelle.protocol.resources.nodes import NodeTake
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.policy.interfaces import PastStep
from pipistrelle.schedulers.policy.jobs import SchedulerJob

#: number of the notice that contains the past
NOTICE: Final = 2


class Past(NamedTuple):
    """The events so far of a run that another scheduler takes over.

    Attributes:
        steps: each start and end of a job, in order.
        running: the running jobs by id, in the order of start.
        rest: all other events.
        going: ids of the running jobs that are being preempted.
        takes: {id of a running job: what it takes of shared nodes}.
    """

    steps: list[PastStep]
    running: dict[str, SchedulerJob]
    rest: list[Event]
    going: set[str]
    takes: dict[str, tuple[NodeTake, ...]]


def is_past(events: Iterable[Event]) -> bool:
    """Return whether a notice (message from the server) has the past of a run.

    A past in which no job was started does not count.
    """
    return any(type(event) is JobStarted for event in events)


def past_of(events: Sequence[Event], job_of: Callable[[JobSubmitted], SchedulerJob]) -> Past:
    """Return the past from the events of a notice (message from the server).

    ``job_of`` returns the job of a submission.

    Raises:
        RemoteProtocolError, NodeSetError: the events are inconsistent.
    """
    started = {event.data.job_id for event in events if isinstance(event, JobStarted)}
    past = Past([], {}, [], set(), {})
    waiting: dict[str, SchedulerJob] = {}
    for event in events:
        if isinstance(event, JobSubmitted) and event.data.job_id in started:
            waiting[event.data.job_id] = job_of(event)
        elif isinstance(event, JobStarted):
            job = waiting.pop(event.data.job_id, None)
            if job is None:
                found = event.data.job_id
                raise RemoteProtocolError("JOB_STARTED names a job that does not wait", found=found)
            job.start, job.expected_end = event.timestamp, event.timestamp + job.occupies
            job.alloc = NodeSet.parse(event.data.alloc)
            past.running[job.id] = job
            past.takes[job.id] = event.data.takes
            if event.data.preempted:
                past.going.add(job.id)
            past.steps.append(PastStep(event.timestamp, job, starts=True))
        elif isinstance(event, JobCompleted) and event.data.job_id in past.running:
            past.steps.append(PastStep(event.timestamp, past.running.pop(event.data.job_id), starts=False))
        else:
            past.rest.append(event)
    return past


def tell_past(policy: object, view: Any, steps: Sequence[PastStep]) -> None:
    """Call the method ``learn_past(view, steps)`` of a policy, if it has one."""
    learn = getattr(policy, "learn_past", None)
    if learn is not None:
        learn(view, steps)

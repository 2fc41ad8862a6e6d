"""The server's jobs, created from a workload.

They are created in blocks, in the workload's order.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import isnan
from typing import Any, ClassVar, Final

from mypy_extensions import mypyc_attr

from pipistrelle.platforms.naming.hostlists import expanded
from pipistrelle.server.engine.jobs import LABEL_NAMES, Job, Labels, LogRecord
from pipistrelle.server.setup.requests import requests_of
from pipistrelle.traces.logs.labels import named_column
from pipistrelle.traces.profiles import Composed, Profile, outcome
from pipistrelle.traces.resilience import Resilience
from pipistrelle.traces.slurm.options import options_of
from pipistrelle.traces.slurm.sbatch_request import most_nodes
from pipistrelle.traces.workload import CANCELLED_AFTER, Workload, decimal_texts

_BLOCK: Final = 4096


@mypyc_attr(allow_interpreted_subclasses=True)
class WorkloadJobs:
    """The jobs of a workload, created in order, with ids ``PREFIX!NAME``.

    A subclass with its own ``job_type`` sets the additional fields in `_complete`.

    Args:
        has_hosts: whether hosts are simulated; without them, a sequence of delays is run as one delay.
        recorded: recorded starts and nodes of the jobs; None: not needed.
        shared: whether the machine's nodes have resources that jobs share.
        with_options: whether the scheduler takes the options of submissions.
    """

    job_type: ClassVar[type[Job]] = Job

    def __init__(
        self,
        workload: Workload,
        prefix: str,
        *,
        has_hosts: bool = False,
        labelled: bool = False,
        resiliences: Mapping[str, Resilience] | None = None,
        recorded: Sequence[LogRecord] | None = None,
        shared: bool = False,
        with_options: bool = False,
    ) -> None:
        self.workload = workload
        self._prefix = prefix
        self._has_hosts = has_hosts
        self._labels = labels_of(workload) if labelled else None
        self._resiliences = resiliences
        self._recorded = recorded
        self._options = options_of(workload) if with_options else None
        self._cancelled = workload.measures.get(CANCELLED_AFTER)
        self._requests = requests_of(workload)
        self._resources = workload.requests if shared else None
        self._outcomes = {name: outcome(profile) for name, profile in (workload.table or {}).items()}

    def __iter__(self) -> Iterator[Job]:
        return self.from_row(0)

    def labels(self) -> dict[str, Labels]:
        """Return {job id: user, group, account, queue and QOS}.

        The result is empty if the jobs have no such labels.
        """
        ids = (f"{self._prefix}!{name}" for name in self.workload.ids)
        return {} if self._labels is None else dict(zip(ids, self._labels, strict=True))

    def from_row(self, row: int) -> Iterator[Job]:
        """Yield the workload's jobs from this row on; rows count from 0."""
        workload, prefix = self.workload, self._prefix
        for begin in range(row, len(workload), _BLOCK):
            block = slice(begin, begin + _BLOCK)
            runtimes = workload.runtime[block]
            rows = zip(
                workload.ids[block],
                workload.submit[block].tolist(),
                workload.size[block].tolist(),
                workload.walltime[block].tolist(),
                runtimes.tolist(),
                decimal_texts(runtimes) if workload.profiles is None else workload.profiles[block],
                strict=True,
            )
            # Creating jobs in blocks leaves less work between two round trips.
            jobs = [
                self.job_type(f"{prefix}!{name}", submit, size, walltime, runtime, profile)
                for name, submit, size, walltime, runtime, profile in rows
            ]
            if self._outcomes:
                for job in jobs:
                    work, job.return_code = self._outcomes[job.profile]
                    if is_work(work, job.runtime, has_hosts=self._has_hosts):
                        job.work = work
            if self._labels is not None:
                for job, names in zip(jobs, self._labels[block], strict=True):
                    job.labels = names
            if self._resiliences:
                for job in jobs:
                    job.resilience = self._resiliences.get(job.id)
            if self._requests is not None:
                for job, request in zip(jobs, self._requests[block], strict=True):
                    job.request = request
            if self._resources is not None:
                for job, taken in zip(jobs, self._resources[block], strict=True):
                    job.resources = taken
            if self._cancelled is not None:
                for job, after in zip(jobs, self._cancelled[block].tolist(), strict=True):
                    if after >= 0:
                        job.cancelled_at = job.submit + after
            if self._recorded is not None:
                for job, told in zip(jobs, self._recorded[block], strict=True):
                    job.recorded = told
            if self._options is not None:
                for job, options in zip(jobs, self._options[block], strict=True):
                    job.options = options
                    if options:
                        job.most = most_nodes(options, job.id)
                        if not job.most and "nodelist" in options:  # the job gets all nodes that it names
                            job.most = len(expanded(options["nodelist"], job.id))
            self._complete(begin, jobs)
            yield from jobs

    def _complete(self, row: int, jobs: list[Any]) -> None:
        """Set further fields of a block of jobs.

        ``row`` is the workload's row of the first one.
        """


def is_work(profile: Profile, runtime: float, *, has_hosts: bool) -> bool:
    """Return whether simulated hosts determine how long a job takes.

    This is so if its ``runtime`` is unknown (NaN), or if hosts are simulated and its profile is composed of parts.
    """
    return isnan(runtime) or (has_hosts and isinstance(profile, Composed))


def labels_of(workload: Workload) -> list[Labels]:
    """Return each job's user, group, account, queue and QOS; None if unknown."""
    unknown: list[str | None] = [None] * len(workload)
    columns = []
    for name in LABEL_NAMES:
        texts = named_column(workload, name)
        columns.append(unknown if texts is None else [text or None for text in texts])
    return list(zip(*columns, strict=True))

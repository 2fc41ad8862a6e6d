"""Look up the user and the queue of a job by its id.

This takes only 16 bytes of memory per job.
"""

from collections.abc import Mapping

import numpy as np

from pipistrelle.server.engine.jobs import Job
from pipistrelle.traces.logs.labels import named_column
from pipistrelle.traces.workload import Workload


class JobOwners:
    """The users and queues of the jobs of all workloads.

    The prefix of a job's id says which workload it belongs to.
    """

    def __init__(self, workloads: Mapping[str, Workload]) -> None:
        self._books = {prefix: _OwnersBook(workload) for prefix, workload in workloads.items()}

    def of(self, job: Job) -> tuple[str, str]:
        """Return the user and the queue of a job; "" if unknown."""
        prefix, _, name = (job.id if job.attempt is None else job.attempt.root).partition("!")
        book = self._books.get(prefix)
        return ("", "") if book is None else book.of(name)


class _OwnersBook:
    """The users and queues of the jobs of one workload.

    They are sorted by the hash of the job's id.
    """

    def __init__(self, workload: Workload) -> None:
        self._ids = workload.ids
        self._users, self._queues = named_column(workload, "user"), named_column(workload, "queue")
        known = self._users is not None or self._queues is not None
        hashes = np.fromiter(map(hash, self._ids if known else ()), dtype=np.int64)
        self._rows = np.argsort(hashes, kind="stable")
        self._hashes = hashes[self._rows]

    def of(self, name: str) -> tuple[str, str]:
        wanted = hash(name)
        for place in range(int(np.searchsorted(self._hashes, wanted)), len(self._hashes)):
            if self._hashes[place] != wanted:
                break
            row = int(self._rows[place])
            if self._ids[row] == name:
                return self._users[row] if self._users else "", self._queues[row] if self._queues else ""
        return "", ""

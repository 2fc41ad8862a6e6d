"""Read the job log of Microsoft's Philly cluster."""

import io
from typing import Final

import msgspec

from pipistrelle.protocol.base.errors import quoted
from pipistrelle.traces.clusters.gpu_log import ENDS, NO_TIME, NONE, GpuLog, spread
from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.logs.job_table import Record, Status


class _Detail(msgspec.Struct):
    ip: str = ""
    gpus: list[str] = []


class _Attempt(msgspec.Struct):
    start_time: str | None = None
    end_time: str | None = None
    detail: list[_Detail] = []


class _PhillyJob(msgspec.Struct):
    jobid: str
    submitted_time: str
    status: str = ""
    vc: str = ""
    user: str = ""
    attempts: list[_Attempt] = []


_PHILLY: Final = msgspec.json.Decoder(list[msgspec.Raw])
_PHILLY_JOB: Final = msgspec.json.Decoder(_PhillyJob)


class PhillyLog(GpuLog):
    """The jobs of Microsoft's Philly cluster: ``cluster_job_log``, a list in JSON.

    Only the last attempt with GPUs counts: its GPUs, its nodes, and its start and end. The log has no cores and no
    memory. A job takes one core for each GPU. A job that never started has unknown GPUs and is left out. Jobs have no
    time limit.
    """

    format = "Philly JSON"

    def read(self, stream: io.BufferedReader, where: str) -> None:
        """Read the jobs of a file; TraceError if it is not a list of jobs."""
        try:
            jobs = _PHILLY.decode(stream.read().removeprefix(b"\xef\xbb\xbf"))
        except (ValueError, RecursionError) as error:
            raise TraceError("is not a list of jobs in JSON", where=where, found=quoted(error)) from None
        for number, raw in enumerate(jobs):
            place = f"{where}, $[{number}]"
            try:
                self._records.append(self._job(raw, place))
            except TraceError as fault:
                self.leave_out(fault)

    def _job(self, raw: msgspec.Raw, place: str) -> Record:
        try:
            job = _PHILLY_JOB.decode(raw)
        except (ValueError, RecursionError) as error:
            raise TraceError("the job cannot be read", where=place, found=quoted(error)) from None
        submit = self._date(job.submitted_time, place)
        last = next((attempt for attempt in reversed(job.attempts) if attempt.detail), None)
        if submit is None or last is None:
            raise TraceError("the job never started, so its GPUs are unknown", where=place, found=quoted(job.jobid))
        start, end = self._date(last.start_time, place), self._date(last.end_time, place)
        gpus, nodes = sum(len(one.gpus) for one in last.detail), len(last.detail)
        labels = {"user": job.user, "queue": job.vc, "state": job.status}
        return Record(
            place=place,
            id=job.jobid,
            submit=submit,
            size=self._size(nodes, gpus, gpus),
            walltime=float("inf"),
            runtime=end - start if start is not None and end is not None and end >= start else NONE,
            wait=start - submit if start is not None and start >= submit else NONE,
            status=ENDS.get(job.status, Status.FAILED if job.status else Status.UNKNOWN),
            labels={name: self.names(text) for name, text in labels.items() if text},
            request=self._request(place, **spread(nodes, gpus, gpus)),
        )

    def _date(self, text: str | None, place: str) -> float | None:
        if text is None or text in NO_TIME:
            return None
        time = self._clock.iso(text)
        if time is None:
            raise TraceError("a time cannot be read", where=place, expected="2017-10-09 09:00:00", found=quoted(text))
        return time

"""Read files of events.

Their format is that of the University at Buffalo's Slurm simulator. One line is one event: ``-dt SECONDS -e
submit_batch_job | OPTIONS pseudo.job``. OPTIONS are options of sbatch, and ``-sim-walltime SECONDS``, the time that the
job takes. ``-cancel-in SECONDS`` cancels the job so long after its submission. Times count from the start of the
controller.
"""

import io
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import inf
from typing import Final

import numpy as np

from pipistrelle.protocol.base.errors import quoted
from pipistrelle.traces.errors import TraceError, counted
from pipistrelle.traces.files import PathText
from pipistrelle.traces.logs.job_table import JobLog, LogOptions, Record, numbered_lines
from pipistrelle.traces.logs.times import Clock, length
from pipistrelle.traces.slurm.arrays import MOST_LISTED, array_indices
from pipistrelle.traces.slurm.options import ARRAY_JOB, ARRAY_TASK, BEGIN, DEPENDENCY, options_text, split_words
from pipistrelle.traces.slurm.sbatch import OPTIONS_OF_SBATCH, OptionRole, SbatchCall, parse_sbatch, unknown_hint
from pipistrelle.traces.slurm.sbatch_request import request_of_options
from pipistrelle.traces.workload import CANCELLED_AFTER, CONSTRAINT, OPTIONS, Workload, is_number

#: kinds of events, by their names in a file
SUBMIT: Final = "submit_batch_job"
CANCEL: Final = ("scancel", "cancel_job")
SCONTROL: Final = "scontrol"
#: time (s) that a job with ``-sim-walltime 0`` takes
LEAST_RUNTIME: Final = 0.001
#: runtime (s) of a job that runs until its limit
_UNTIL_LIMIT: Final = 1e9
#: most tasks that the events of a file cancel
_MOST_CANCELLED: Final = 2_000_000
#: options that are labels, or the walltime, of the job
_LABELLED: Final = ("account", "constraint", "gid", "job-name", "partition", "qos", "time", "uid")

_NUMBER: Final = re.compile(r"-?\d{1,12}(?:\.\d{1,9})?")
_NAMED: Final = re.compile(r"jobid_(\d{1,15})")
_START: Final = re.compile(r"#\s*start\s*[:=]\s*(\S+)", re.IGNORECASE)
_BEGIN: Final = re.compile(r"now(?:\+(\d{1,9})(second|minute|hour|day|week)?s?)?", re.IGNORECASE)
_UNITS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}
_NO_LIMIT: Final = ("UNLIMITED", "INFINITE", "-1", "0")
_TASKS: Final = re.compile(r"(\d{1,15})(?:_(\d{1,7}|\[[0-9,:%-]+\]))?")


@dataclass(slots=True)
class EventLine:
    """A line of the file: its time, kind and arguments.

    The time is in seconds after the controller's start.
    """

    place: str
    time: float
    kind: str
    words: list[str] = field(default_factory=list)


def read_events(stream: io.BufferedReader, where: str) -> Iterator[EventLine | str]:
    """Yield the events of a file in order, and comments as text.

    Raises:
        TraceError: if a line is malformed.
    """
    for place, text in numbered_lines(stream, where):
        if text.lstrip().startswith("#"):
            yield text.strip()
            continue
        head, _, rest = text.partition("|")
        try:
            words, arguments = split_words(head), split_words(rest)
        except ValueError as error:
            raise TraceError(f"a line cannot be split into words ({error})", where=place, found=quoted(text)) from None
        named = dict(zip(words[::2], words[1::2], strict=False))
        time = named.get("-dt", "")
        if len(words) != 4 or named.keys() != {"-dt", "-e"} or not _NUMBER.fullmatch(time) or float(time) < 0:
            raise TraceError(
                "this is no event",
                where=place,
                expected="-dt SECONDS -e submit_batch_job | OPTIONS",
                found=quoted(text),
            )
        yield EventLine(place, float(time), named["-e"], arguments)


class EventsLog(JobLog):
    """Reader of files of Slurm events.

    - If the names of all jobs have the form ``jobid_N``, the id of a job is N. Otherwise it is the job's number in the
      order of submissions, as Slurm counts.
    - Each task of an array is a job ``ARRAY_TASK``, such as ``34_0``.
    - With ``-sim-walltime -1`` the job runs until its time limit. 0 is read as 0.001 s.
    - Options that only the scheduler uses become the label ``options``; ``--dependency`` becomes ``dependency``.
    - ``scancel`` events cancel jobs. ``scontrol`` events are for the option ``--reservations``.
    - A comment ``# start: DATE`` gives the date of time 0.
    """

    format = "Slurm events"
    absolute = False
    counts_gpus = True

    def __init__(self, options: LogOptions | None = None) -> None:
        super().__init__(options)
        self._submitted: list[tuple[EventLine, SbatchCall]] = []
        self._cancelled: list[EventLine] = []
        #: {job id: time from its submission to its cancellation, s}, from ``-cancel-in``
        self._cancelled_in: dict[str, float] = {}
        self._ignored: Counter[str] = Counter()
        self._epoch: float | None = None

    def read(self, stream: io.BufferedReader, where: str) -> None:
        """Read the events of a file; TraceError for a malformed line."""
        for event in read_events(stream, where):
            if isinstance(event, str):
                found = _START.fullmatch(event)
                self._epoch = Clock(self.zone).iso(found[1]) if found else self._epoch
            elif event.kind == SUBMIT:
                self._submitted.append((event, parse_sbatch(event.words, event.place)))
            elif event.kind in CANCEL:
                self._cancelled.append(event)
            elif event.kind == SCONTROL:
                self._ignored["scontrol events (name the file with --reservations)"] += 1
            else:
                self._ignored[f"events of the kind {event.kind}"] += 1

    def records(self) -> list[Record]:
        """Return the submitted jobs, one for each task of an array."""
        found: list[Record] = []
        ids, tasks = self._ids(), 0
        for (event, submission), job in zip(self._submitted, ids, strict=True):
            record = self._record(event, submission, job)
            array = submission.values.get("array")
            if array is None:
                found.append(record)
                self._cancel_in(submission, [record.id], event.place)
                continue
            indices = array_indices(array, event.place)
            tasks += len(indices)
            if tasks > MOST_LISTED:
                raise TraceError(
                    "the arrays have too many tasks", where=event.place, expected=f"at most {MOST_LISTED:,}"
                )
            kept = record.labels.get(OPTIONS, "")
            for index in indices:
                task = {"array": array, ARRAY_JOB: job, ARRAY_TASK: str(index)}
                labels = {**record.labels, OPTIONS: f"{options_text(task)} {kept}".strip()}
                found.append(replace(record, id=f"{job}_{index}", labels=labels))
            self._cancel_in(submission, [f"{job}_{index}" for index in indices], event.place)
        return found

    def workload(self, path: PathText) -> Workload:
        """Return the workload, with the times of cancellations.

        Its remarks warn about ignored options and events.
        """
        made = super().workload(path)
        measures = dict(made.measures)
        cancelled = self._cancellations(made)
        if cancelled is not None:
            measures[CANCELLED_AFTER] = cancelled
        said = tuple(f"{path}: {counted(count, 'time')} ignored: {what}" for what, count in self._ignored.items())
        return replace(made, measures=measures, epoch=self._epoch, remarks=said)

    def _ids(self) -> list[str]:
        named = [
            submission.simulated.get("jid") or (found[1] if (found := _NAMED.fullmatch(name)) else "")
            for _, submission in self._submitted
            for name in [next(iter(submission.names), "")]
        ]
        if all(is_number(name) for name in named) and len(set(named)) == len(named):
            return [str(int(name)) for name in named]
        return [str(number) for number in range(1, len(named) + 1)]

    def _record(self, event: EventLine, submission: SbatchCall, job: str) -> Record:
        place, values = event.place, submission.values
        for name in submission.unknown:
            self._ignored[f"the unknown option {name}. {unknown_hint(name)}".rstrip(". ")] += 1
        for name in values:
            if OPTIONS_OF_SBATCH[name].role is OptionRole.WARNED:
                self._ignored[f"the option --{name}, which is not supported"] += 1
        request, rest = request_of_options(values, place)
        limit = self._limit(values.get("time"), place)
        labels = {
            "name": values.get("job-name", ""),
            "user": values.get("uid", ""),
            "group": values.get("gid", ""),
            "account": values.get("account", ""),
            "queue": values.get("partition", "").partition(",")[0],
            "qos": values.get("qos", ""),
            CONSTRAINT: values.get("constraint", ""),
            DEPENDENCY: values.get(DEPENDENCY, ""),
            OPTIONS: options_text(self._options(event, values, rest)),
        }
        sizes = {"nodes": request.least_nodes, "processors": request.cores}
        return Record(
            place=place,
            id=job,
            submit=event.time,
            size=sizes.get(self.options.units, max(1, request.gpus or request.gpus_per_node * request.least_nodes)),
            walltime=limit,
            runtime=self._runtime(submission, limit, place),
            labels={name: self.names(text) for name, text in labels.items() if text},
            request=request,
        )

    def _options(self, event: EventLine, values: dict[str, str], rest: dict[str, str]) -> dict[str, str]:
        """Return the options of a submission that are passed to the scheduler.

        Args:
            values: all options, by long name.
            rest: the options about nodes that a `Request` cannot hold; these are passed too.
        """
        passed = {
            name: value
            for name, value in values.items()
            if (OPTIONS_OF_SBATCH[name].role is OptionRole.PASSED and name not in ("array", BEGIN, DEPENDENCY))
            or (OPTIONS_OF_SBATCH[name].role is OptionRole.READ and name not in _LABELLED)
        }
        if "," in values.get("partition", ""):
            passed["partition"] = values["partition"]
        if BEGIN in values and (delay := self._delay(values[BEGIN], event)) > 0:
            passed[BEGIN] = f"now+{delay}"
        return passed | rest

    def _delay(self, text: str, event: EventLine) -> int:
        """Return the time from submission to the date of ``--begin``.

        It is in whole seconds.
        """
        found = _BEGIN.fullmatch(text)
        if found is not None:
            return int(found[1] or 0) * _UNITS[(found[2] or "second").lower()]
        date = Clock(self.zone).iso(text.replace(" ", "T"))
        if date is None or self._epoch is None:
            raise TraceError(
                "the value of --begin is not supported",
                where=event.place,
                expected="now+SECONDS, or a date in a file with a line '# start: DATE'",
                found=quoted(text),
            )
        return max(0, round(date - self._epoch - event.time))

    def _limit(self, text: str | None, place: str) -> float:
        if text is None or text.upper() in _NO_LIMIT:
            return inf
        seconds = length(text, 60.0)
        if not seconds:
            expected = "minutes, [DAYS-]HH:MM:SS or UNLIMITED"
            raise TraceError("the time limit is malformed", where=place, expected=expected, found=quoted(text))
        return seconds

    def _runtime(self, submission: SbatchCall, limit: float, place: str) -> float:
        text = submission.simulated.get("sim-walltime", submission.simulated.get("sleep", "-1"))
        if not _NUMBER.fullmatch(text):
            raise TraceError(
                "-sim-walltime is malformed", where=place, expected="a number of seconds", found=quoted(text)
            )
        seconds = float(text)
        if seconds < 0:  # as the simulator does, the job runs until it is killed
            return _UNTIL_LIMIT if limit == inf else 2 * limit + 86400.0
        return max(seconds, LEAST_RUNTIME)

    def _cancel_in(self, submission: SbatchCall, ids: list[str], place: str) -> None:
        """Record the cancellation of a submission's jobs that the option ``-cancel-in`` requests."""
        text = submission.simulated.get("cancel-in")
        if text is None:
            return
        if not _NUMBER.fullmatch(text) or float(text) < 0:
            raise TraceError("-cancel-in is malformed", where=place, expected="a number of seconds", found=quoted(text))
        self._cancelled_in.update(dict.fromkeys(ids, float(text)))

    def _cancellations(self, made: Workload) -> "np.ndarray[tuple[int], np.dtype[np.float64]] | None":
        """Return the time (s) from each job's submission to its cancellation, shape (n,).

        It is -1 for jobs that are not cancelled. The result is None if no event cancels jobs.
        """
        if not self._cancelled and not self._cancelled_in:
            return None
        after = np.array([self._cancelled_in.get(name, -1.0) for name in made.ids])
        rows: dict[str, list[int]] = {}
        many = 0
        for row, name in enumerate(made.ids):
            for known in {name, name.partition("_")[0]}:
                rows.setdefault(known, []).append(row)
        for event in self._cancelled:
            names = [word for word in event.words if not word.startswith("-")]
            if not names or any(not _TASKS.fullmatch(name) for name in names):
                expected = "ids of jobs, as 17 or 34_[0-3]"
                raise TraceError(
                    "scancel names no job", where=event.place, expected=expected, found=quoted(event.words)
                )
            each = [one for name in names for one in _each_task(name, event.place)]
            found = [row for one in each for row in rows.get(one, ())]
            many += len(each) + len(found)
            if many > _MOST_CANCELLED:
                most = f"at most {_MOST_CANCELLED:,}"
                raise TraceError("the events cancel too many tasks", where=event.place, expected=most)
            for row in found:
                since = event.time - float(made.submit[row])
                if since >= 0 and not 0 <= after[row] <= since:
                    after[row] = since
        return after


def _each_task(name: str, place: str) -> list[str]:
    found = _TASKS.fullmatch(name)
    if found is None or found[2] is None or not found[2].startswith("["):
        return [name]
    return [f"{found[1]}_{index}" for index in array_indices(found[2][1:-1], place)]

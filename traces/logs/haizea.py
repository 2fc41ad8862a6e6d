"""Haizea's XML of leases: what each asks for, when it is asked, for how long, and the machine.

The format: examples of Haizea and of paper 001's appendix C; nothing outside the file is looked at.
"""

import io
import re
from collections.abc import Callable
from typing import Final, NoReturn

from pipistrelle.protocol.base.errors import quoted
from pipistrelle.protocol.base.markup import XmlReader
from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.files import PathText, beginning, binary_file
from pipistrelle.traces.logs.job_table import JobLog, Record
from pipistrelle.traces.workload import is_number

_TIME: Final = re.compile(r"(?:(\d{1,9}):)?(\d{1,9}):(\d{1,9}):(\d{1,9}(?:\.\d{1,9})?)")
#: the queue of leases that must start at an exact time
RESERVED: Final = "advance-reservation"
#: the directive of the header with the site's sets of nodes, one a line: how many, and of which class
NODES: Final = "Nodes"

_DEEPEST: Final = 100
_MOST_DIGITS: Final = 9


def is_lease_trace(path: PathText) -> bool:
    """Tell whether a file begins as a trace of leases does; one that cannot be read does not."""
    head = beginning(path)
    return head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"<" and b"<lease-workload" in head


class HaizeaLog(JobLog):
    """The leases of a Haizea trace as jobs.

    A lease's size is the number of its nodes; its requested time is ``duration``, its run time ``realduration``, which
    is the same where it is absent. Leases without an id are numbered in the file's order. The machine's size is the
    number of the site's nodes; the header's `NODES` has its sets of nodes, if their reliability is told. The measure
    ``exact_wait`` says how long after its arrival a lease must start that has an exact time, which is also its wait in
    the log; its queue is `RESERVED`. What a lease wants of the nodes' reliability (1 is the most, 10 the least), its
    highest if sets of nodes differ, is its QOS: ``reliability-5``. Times are those since the trace's begin:
    ``HH:MM:SS`` with or without days before and a fraction after. A share of a node's CPU is no number of processors:
    these are refused.
    """

    format = "Haizea leases"
    absolute = False

    def read(self, stream: io.BufferedReader, where: str) -> None:
        """Take the leases of a file; what is no such XML, or declares entities, is refused."""
        if self.options.units != "nodes":
            raise TraceError(
                "the log has no processors",
                where=where,
                expected="units of nodes",
                hint="Haizea's leases ask for nodes, and shares of their CPUs.",
            )
        data = stream.read().removeprefix(b"\xef\xbb\xbf")
        if b"\0" in data:
            raise binary_file(where)
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            place = f"{where}, byte {error.start}"
            raise TraceError("is not UTF-8 text", where=place, hint="Save it as UTF-8.") from None
        self._reader = _Reader(where, self.names)
        self._reader.parse(text)
        self.machine_size = sum(count for count, _ in self._reader.site) or None
        if any(kind for _, kind in self._reader.site):
            self.header[NODES] = "\n".join(f"{count} {kind}".strip() for count, kind in self._reader.site)

    def records(self) -> list[Record]:
        """Return the leases."""
        return self._reader.records


class _Reader(XmlReader):
    """Follows the elements; what a lease says is gathered until it ends."""

    error = TraceError
    subject = "a trace"
    hint = "Check that the file is complete."

    def __init__(self, where: str, names: Callable[[str], str]) -> None:
        super().__init__(where)
        self.records: list[Record] = []
        #: (how many nodes, their class or ""), set by set
        self.site: list[tuple[int, str]] = []
        self._names = names
        self._open: list[str] = []
        self._lease: dict[str, str] = {}
        self._nodes = 0
        self._line = 0
        #: {what a lease says: on which line}
        self._lines: dict[str, int] = {}
        self._used: set[str] = set()

    def _fail(self, what: str, expected: str, found: str | None = None, line: int | None = None) -> NoReturn:
        raise TraceError(
            what,
            where=f"{self.where}, line {line or self.line()}",
            expected=expected,
            found=None if found is None else quoted(found),
            hint="'pipistrelle help workloads' shows a trace of leases.",
        )

    def begin(self, name: str, attributes: dict[str, str]) -> None:
        """Take the begin of an element."""
        if not self._open and name != "lease-workload":
            self._fail("this is no trace of leases", "<lease-workload>", f"<{name}>")
        if len(self._open) >= _DEEPEST:
            self._fail("elements are nested too deep", f"at most {_DEEPEST} in one another")
        self._open.append(name)
        if name == "node-set":
            count = attributes.get("numnodes", "1")
            if not is_number(count, _MOST_DIGITS):
                self._fail("numnodes is not a whole number", f"0 or more, at most {_MOST_DIGITS} digits", count)
            if "lease-request" in self._open:
                self._nodes += int(count)
            elif "site" in self._open:
                self.site.append((int(count), ""))
        elif name == "lease-request":
            self._lease, self._nodes = {"arrival": attributes.get("arrival", "")}, 0
            self._reliability: list[int] = []
            self._line = self.line()
            self._lines = {"arrival": self._line}
        elif name == "res" and attributes.get("type", "").lower() == "reliability":
            amount = attributes.get("amount", "")
            if not is_number(amount, _MOST_DIGITS):
                self._fail("a reliability is not a whole number", "1, the highest, to 10", amount)
            if "lease-request" in self._open:
                self._reliability.append(int(amount))
            elif self.site:
                self.site[-1] = (self.site[-1][0], f"reliability-{int(amount)}")
        elif "lease-request" in self._open:
            if name == "lease":
                self._lease["id"] = attributes.get("id", "")
                self._lease["user"] = attributes.get("user", "")
            elif name in ("duration", "realduration", "exact"):
                what = "start" if name == "exact" else name
                self._lease[what] = attributes.get("time", "")
                self._lines[what] = self.line()

    def end(self, name: str) -> None:
        """Take the end of an element, and a lease with its."""
        self._open.pop()
        if name != "lease-request":
            return
        arrival = self._seconds("arrival")
        duration = self._seconds("duration")
        start = self._seconds("start") if self._lease.get("start") else None
        if not self._nodes:
            self._fail("the lease asks for no nodes", "<node-set numnodes='...'>", line=self._line)
        job = self._lease.get("id") or self._free_id()
        self._used.add(job)
        wait = -1.0 if start is None else max(start - arrival, 0.0)
        labels = {
            "user": self._names(self._lease.get("user", "")),
            "queue": "" if start is None else RESERVED,
            "qos": self._names(f"reliability-{min(self._reliability)}") if self._reliability else "",
        }
        self.records.append(
            Record(
                place=f"{self.where}, line {self._line}",
                id=job,
                submit=arrival,
                size=self._nodes,
                walltime=duration,
                runtime=self._seconds("realduration") if "realduration" in self._lease else duration,
                wait=wait,
                exact_wait=wait,
                labels=labels,
            )
        )

    def _free_id(self) -> str:
        number = len(self.records) + 1
        while str(number) in self._used:
            number += 1
        return str(number)

    def _seconds(self, what: str) -> float:
        text = self._lease.get(what, "")
        found = _TIME.fullmatch(text.strip())
        if found is None or not text.isascii():
            line = self._lines.get(what, self._line)
            self._fail(f"the lease's {what} is no time", "[DD:]HH:MM:SS", text, line)
        return int(found[1] or 0) * 86400 + int(found[2]) * 3600 + int(found[3]) * 60 + float(found[4])

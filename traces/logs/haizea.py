"""Read Haizea's XML lease traces.

The format follows Haizea's examples and appendix C of S. Umamaheshwaran's thesis (Purdue University, 2014).
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
#: queue of leases with an exact start time
RESERVED: Final = "advance-reservation"
#: header directive with the site's node sets; each line has a count and a class
NODES: Final = "Nodes"

_DEEPEST: Final = 100
_MOST_DIGITS: Final = 9


def is_lease_trace(path: PathText) -> bool:
    """Return whether a file begins like a lease trace; False if it cannot be read."""
    head = beginning(path)
    return head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"<" and b"<lease-workload" in head


class HaizeaLog(JobLog):
    """The leases of a Haizea trace, read as jobs.

    - Size: the number of nodes. Leases for a share of a node's CPU are not supported.
    - Requested time: ``duration``. Run time: ``realduration``, or ``duration`` if that is absent.
    - Submit time: relative to the trace's start, ``HH:MM:SS``, optionally with days before it and a
      fraction of a second after it.
    - Id: leases without an id are numbered in file order.
    - Queue: `RESERVED` for leases with an exact start. Their ``exact_wait`` and wait are from arrival to start.
    - QOS: the required reliability, such as ``reliability-5``, from 1 (highest) to 10. If a lease's node sets differ,
      the highest counts.

    The machine's size is the number of the site's nodes. If nodes have reliabilities, the header's `NODES` lists the
    node sets.
    """

    format = "Haizea leases"
    absolute = False

    def read(self, stream: io.BufferedReader, where: str) -> None:
        """Read the leases of a file; reject other XML files and entity declarations."""
        if self.options.units != "nodes":
            raise TraceError(
                "the log does not count processors",
                where=where,
                expected="units of nodes",
                hint="Haizea's leases request nodes and shares of their CPUs.",
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
        """Return the leases as job records."""
        return self._reader.records


class _Reader(XmlReader):
    """A parser that reads XML elements in order.

    It builds each lease until its end tag.
    """

    error = TraceError
    subject = "a trace"
    hint = "Check that the file is complete."

    def __init__(self, where: str, names: Callable[[str], str]) -> None:
        super().__init__(where)
        self.records: list[Record] = []
        #: (number of nodes, class or "") of each node set
        self.site: list[tuple[int, str]] = []
        self._names = names
        self._open: list[str] = []
        self._lease: dict[str, str] = {}
        self._nodes = 0
        self._line = 0
        #: {field of the lease: line}
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
        """Process the start tag of an XML element."""
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
        """Process the end tag of an XML element.

        The end tag of a lease completes the lease.
        """
        self._open.pop()
        if name != "lease-request":
            return
        arrival = self._seconds("arrival")
        duration = self._seconds("duration")
        start = self._seconds("start") if self._lease.get("start") else None
        if not self._nodes:
            self._fail("the lease requests no nodes", "<node-set numnodes='...'>", line=self._line)
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
            self._fail(f"the lease's {what} is not a time", "[DD:]HH:MM:SS", text, line)
        return int(found[1] or 0) * 86400 + int(found[2]) * 3600 + int(found[3]) * 60 + float(found[4])

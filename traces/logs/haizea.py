"""Haizea's XML of leases: what each asks for, when it is asked, for how long, and the machine.

The format: examples of Haizea and of paper 001's appendix C; nothing outside the file is looked at.
"""

import io
import os
import re
from typing import Final, NoReturn
from xml.parsers import expat

from pipistrelle.protocol.base.errors import quoted
from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.files import PathText, binary_file, open_trace
from pipistrelle.traces.logs.job_table import LogOptions, NameNumbers, Record, assemble
from pipistrelle.traces.workload import Workload

FORMAT: Final = "Haizea leases"

_TIME: Final = re.compile(r"(?:(\d{1,9}):)?(\d{1,9}):(\d{1,9}):(\d{1,9}(?:\.\d{1,9})?)")
_DEEPEST: Final = 100
_MOST_DIGITS: Final = 9
_LOOKED_AT: Final = 1 << 14  # bytes: more than any remark before the first element is long


def is_lease_trace(path: PathText) -> bool:
    """Tell whether a file begins as a trace of leases does; one that cannot be read does not."""
    if not os.path.isfile(path):  # bytes of a pipe would be gone once looked at
        return False
    try:
        with open_trace(path) as stream:
            head = stream.peek(_LOOKED_AT)[:_LOOKED_AT]
    except TraceError:
        return False
    return head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"<" and b"<lease-workload" in head


def parse_haizea(stream: io.BufferedReader, path: PathText, options: LogOptions | None = None) -> Workload:
    """Return the leases of a Haizea trace as jobs, by arrival; `path` serves for the name and for messages.

    A lease's size is the number of its nodes; its requested time is ``duration``, its run time ``realduration``, which
    is the same where it is absent. Leases without an id are numbered in the file's order. The machine's size is the
    number of the site's nodes. A lease that must start at an exact time is a job that may start at once: how long it
    would wait for that time is kept as the log's wait. Times are those since the trace's begin: ``HH:MM:SS`` with or
    without days before and a fraction after.

    Raises
    ------
    TraceError
        if the text is no such XML, declares entities, a lease lacks something, or processors are asked for: a share of
        a node's CPU is no number of processors.
    """
    options = options or LogOptions()
    where = str(path)
    if options.units != "nodes":
        raise TraceError(
            "the log has no processors",
            where=where,
            expected="units of nodes",
            hint="Haizea's leases ask for nodes, and shares of their CPUs.",
        )
    options.zone()
    data = stream.read().removeprefix(b"\xef\xbb\xbf")
    if b"\0" in data:
        raise binary_file(where)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise TraceError("is not UTF-8 text", where=f"{where}, byte {error.start}", hint="Save it as UTF-8.") from None
    before, entity, _ = text.partition("<!ENTITY")
    if entity:  # looked for before parsing: expat would go on expanding them after a handler's refusal
        raise TraceError(
            "a trace declares no entities",
            where=f"{where}, line {before.count(chr(10)) + 1}",
            expected="no <!ENTITY ...>",
            hint="Write out what it stands for.",
        )
    reader = _Reader(where)
    reader.read(text)
    return assemble(
        reader.records,
        path,
        format=FORMAT,
        timezone=options.timezone,
        absolute=False,
        machine_size=reader.site or None,
    )


class _Reader:
    """Follows the elements; what a lease says is gathered until it ends."""

    def __init__(self, where: str) -> None:
        self.records: list[Record] = []
        self.site = 0
        self._where = where
        self._names = NameNumbers()
        self._open: list[str] = []
        self._lease: dict[str, str] = {}
        self._nodes = 0
        self._line = 0
        #: {what a lease says: on which line}
        self._lines: dict[str, int] = {}
        self._before = 0
        self._used: set[str] = set()
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._begin
        self._parser.EndElementHandler = self._end

    def read(self, text: str) -> None:
        # The declaration put in place of the file's makes a reference to an entity an error in any case.
        found = re.match(r"[ \t\r\n]*(<\?xml\s[^<>]*\?>)?", text)
        before = found[0] if found else ""
        self._before = before.count("\n")
        try:
            self._parser.Parse('<?xml version="1.0" standalone="yes"?>' + text[len(before) :], True)
        except expat.ExpatError as error:
            raise TraceError(
                f"this is not XML: {expat.ErrorString(error.code)}",
                where=f"{self._where}, line {error.lineno + self._before}",
                hint="Check that the file is complete.",
            ) from None

    def _at(self) -> int:
        """Return the number of the line that is being read."""
        return self._parser.CurrentLineNumber + self._before

    def _fail(self, what: str, expected: str, found: str | None = None, line: int | None = None) -> NoReturn:
        raise TraceError(
            what,
            where=f"{self._where}, line {line or self._at()}",
            expected=expected,
            found=None if found is None else quoted(found),
            hint="docs/workloads.md shows a trace of leases.",
        )

    def _begin(self, name: str, attributes: dict[str, str]) -> None:
        if not self._open and name != "lease-workload":
            self._fail("this is no trace of leases", "<lease-workload>", f"<{name}>")
        if len(self._open) >= _DEEPEST:
            self._fail("elements are nested too deep", f"at most {_DEEPEST} in one another")
        self._open.append(name)
        if name == "node-set":
            count = attributes.get("numnodes", "1")
            if not (count.isascii() and count.isdecimal() and len(count) <= _MOST_DIGITS):
                self._fail("numnodes is not a whole number", f"0 or more, at most {_MOST_DIGITS} digits", count)
            if "lease-request" in self._open:
                self._nodes += int(count)
            elif "site" in self._open:
                self.site += int(count)
        elif name == "lease-request":
            self._lease, self._nodes = {"arrival": attributes.get("arrival", "")}, 0
            self._line = self._at()
            self._lines = {"arrival": self._line}
        elif "lease-request" in self._open:
            if name == "lease":
                self._lease["id"] = attributes.get("id", "")
                self._lease["user"] = attributes.get("user", "")
            elif name in ("duration", "realduration"):
                self._lease[name] = attributes.get("time", "")
                self._lines[name] = self._at()
            elif name == "exact":
                self._lease["start"] = attributes.get("time", "")
                self._lines["start"] = self._at()

    def _end(self, name: str) -> None:
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
        labels = {"user": self._names(self._lease["user"])} if self._lease.get("user") else {}
        self.records.append(
            Record(
                place=f"{self._where}, line {self._line}",
                id=job,
                submit=arrival,
                size=self._nodes,
                walltime=duration,
                runtime=self._seconds("realduration") if "realduration" in self._lease else duration,
                wait=max(start - arrival, 0.0) if start is not None else -1.0,
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

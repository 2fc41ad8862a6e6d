"""Write test results as JUnit XML, which CI services show."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum
from typing import Final, Literal
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from pipistrelle.protocol.base.errors import printable

#: {verdict: (XML element, attribute of the suite that counts it)}
_TOLD: Final = {"failed": ("failure", "failures"), "error": ("error", "errors"), "skipped": ("skipped", "skipped")}


@dataclass(frozen=True, slots=True)
class TestLine:
    """A test for the report: its name, verdict, wall-clock time (s) and message."""

    name: str
    verdict: Literal["passed", "failed", "error", "skipped"]
    seconds: float
    lines: Sequence[str] = ()


def junit_xml(suite: str, tests: Sequence[TestLine]) -> str:
    """Return the XML of a test suite; replace characters that XML forbids."""
    root = Element("testsuites")
    counts = {count: str(sum(test.verdict == verdict for test in tests)) for verdict, (_, count) in _TOLD.items()}
    seconds = f"{fsum(test.seconds for test in tests):.3f}"
    whole = SubElement(root, "testsuite", {"name": suite, "tests": str(len(tests)), **counts, "time": seconds})
    for test in tests:
        one = SubElement(whole, "testcase", classname=suite, name=printable(test.name), time=f"{test.seconds:.3f}")
        if test.verdict in _TOLD:
            lines = [printable(line) for line in test.lines]
            told = SubElement(one, _TOLD[test.verdict][0], message=lines[0] if lines else test.verdict)
            told.text = "\n".join(lines)
    indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + tostring(root, encoding="unicode") + "\n"

"""Convert options of sbatch to a label of a job, and back.

These are the options that only the scheduler uses. The label is a text of sbatch's long options: ``--begin=now+90
--array=0-7%2 --nice=50``.
"""

import re
import shlex
from collections.abc import Mapping
from typing import Final

from pipistrelle.protocol.base.errors import quoted
from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.logs.labels import dependency_column
from pipistrelle.traces.workload import OPTIONS, Workload, is_number

#: options that name the array of a task and the task's number
ARRAY_JOB: Final = "array-job"
ARRAY_TASK: Final = "array-task"
BEGIN: Final = "begin"
DEPENDENCY: Final = "dependency"
_SINGLETON: Final = "singleton"
_NOW: Final = "now+"
#: matches a text without quotes or other signs that the shell treats specially: it is split at blanks only
_UNQUOTED: Final = re.compile(r"[\t!#-&(-\[\]-~ ]*")
#: the next blanks, quoted text, escaped character, or text without any of these
_PART: Final = re.compile(r"""[ \t\r\n]+|'([^']*)'|"((?:[^"\\]++|\\.)*+)"|\\(.)|([^ \t\r\n'"\\]+)""", re.DOTALL)
_ESCAPED: Final = re.compile(r'\\(["\\])')


def split_words(text: str) -> list[str]:
    """Return the words of a command as `shlex.split` does, but in a tenth of its time.

    Raises:
        ValueError: a quote is not closed, or the text ends with a backslash.
    """
    if _UNQUOTED.fullmatch(text):
        return text.split()
    words: list[str] = []
    parts: list[str] = []
    at = 0
    while at < len(text):
        found = _PART.match(text, at)
        if found is None:
            raise ValueError("No escaped character" if text[at] == "\\" else "No closing quotation")
        at = found.end()
        if found.lastindex is not None:
            part = found[found.lastindex]
            parts.append(_ESCAPED.sub(r"\1", part) if found.lastindex == 2 else part)
        elif parts:
            words.append("".join(parts))
            parts = []
    return [*words, "".join(parts)] if parts else words


def options_text(options: Mapping[str, str]) -> str:
    """Return sbatch options as a text, such as ``--begin=10:00 --hold``; the value "" means that it has none."""
    return " ".join(f"--{name}" + (f"={shlex.quote(value)}" if value else "") for name, value in options.items())


def parse_options(text: str, where: str) -> dict[str, str]:
    """Parse the text of a label; return {long name: value}.

    Raises:
        TraceError: the text is malformed.
    """
    found: dict[str, str] = {}
    try:
        words = split_words(text)
    except ValueError:
        words = [text]
    for word in words:
        name, _, value = word.removeprefix("--").partition("=")
        if not word.startswith("--") or not name:
            raise TraceError(
                "options of a job are malformed",
                where=where,
                expected="as --begin=now+90 --nice=50",
                found=quoted(text),
            )
        found[name] = value
    return found


def options_of(workload: Workload) -> list[dict[str, str] | None] | None:
    """Return the options of each job, including its dependency.

    Return None if no job has any. If any dependency is ``singleton``, which concerns jobs with equal names, the options
    of all jobs include their names.

    Raises:
        TraceError: a label is malformed.
    """
    texts = workload.labels.get(OPTIONS) or [""] * len(workload)
    dependencies = dependency_column(workload) or [""] * len(workload)
    names = workload.labels.get("name") or [""] * len(workload)
    singletons = any(_SINGLETON in dependency for dependency in set(dependencies))
    found: list[dict[str, str] | None] = []
    for row, (text, dependency) in enumerate(zip(texts, dependencies, strict=True)):
        options = parse_options(text, f"{workload.source}, job {quoted(workload.ids[row])}") if text else {}
        if dependency:
            options[DEPENDENCY] = dependency
        if singletons and names[row]:
            options["name"] = names[row]
        found.append(options or None)
    return found if any(found) else None


def begin_delay(options: Mapping[str, str]) -> float:
    """Return how long (s) after its submission a job may start.

    The option ``begin`` gives this time; it is 0 without the option.
    """
    text = options.get(BEGIN, "")
    return float(text.removeprefix(_NOW)) if text.startswith(_NOW) and is_number(text.removeprefix(_NOW)) else 0.0

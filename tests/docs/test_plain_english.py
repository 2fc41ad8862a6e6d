"""Texts that users read avoid the patterns that made them hard to read; CONTRIBUTING.md names this test."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: {pattern: what to write}
PATTERNS = {
    r"\b(jobs?|nodes?|units?|schedulers?|servers?) (who|whom)\b": "things are not people: that",
    r"\b(those|jobs|all|others) who (wait|run|ran)": "things are not people: queued jobs, running jobs",
    r"\bthere (is|are) not\b": "does not exist, is not supported",
    r"\bbut for\b": "except",
    r"\b(is|are|was|were) to be expected\b": "is expected",
    r"\bof chance\b": "random",
    r"\bwhat shall\b|\bshall be\b": "is, must be",
    r"\bas many as can be\b": "as many as possible",
    r"\b(come|comes|came) again\b": "is requeued, reconnects",
    r"\bhave others\b": "let others",
    r"\b(is|are) told (of|what|all|again|about)\b": "is notified, receives, is replayed",
    r"\b(is|are) looked at\b": "is checked, is validated",
    r"\bbecomes? of\b": "happens to",
    r"(?<!made )(?<!`)\banew\b(?!:)": "again, new",  # 'made anew' is an outcome in the outputs of `study papers`
    r"\bof one's own\b": "your own",
    r"\bgo(es)? on\b": "continues",
    r"\b(whoever|somebody)\b": "say who: the scheduler, the user",
    r"\bof which there\b": "that exist",
    r"\bso long (as|it|that)\b": "as long as, for that time",
    r"\bfor good\b": "permanently",
    r"\bat any rate\b": "in any case, at any failure rate",
    r"\b(and|or) the like\b": "name the others",
    r"\beven so\b": "nevertheless, also then",
    r"\bof what was asked for\b|\bin its turn\b|\bonce more\b": "say it directly",
    r"\b(the (former|latter)|respectively|therein|thereof|thereby|whereby|wherein)\b": "name the thing",
    r"\bstarts? elsewhere\b": "that the user starts",
    r"\bemulat(e|es|ed|or)\b": "simulate (README and docs/index.md define emulate)",
}
#: {file: texts that may stand there}
ALLOWED = {
    "README.md": ("*emulates*",),
    "docs/index.md": ("*emulates*",),
    "docs/explanation/papers.md": ("GPUs that failed for good",),  # a paper's words
    "kernel/subset.py": ("its jobs go on without some of their nodes",),  # recorded as `engine_why`
}
FOLDERS = (
    "protocol", "platforms", "traces", "server", "schedulers", "models", "runs", "kernel", "reports", "studies",
    "papers", "cli", "docs",
)  # fmt: skip


def files(folder: str) -> list[str]:
    """Return the pages and modules in a folder of the project; ``.``: the pages at its top."""
    found = ROOT.glob("*.md") if folder == "." else (ROOT / folder).rglob("*.*")
    kept = (path for path in found if path.suffix in {".md", ".py"} and "node_modules" not in path.parts)
    return sorted(path.relative_to(ROOT).as_posix() for path in kept)


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and text: a page without code blocks; a module's docstrings and strings with blanks."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
                yield node.lineno, " ".join(node.value.split())
        return
    inside = False
    for number, line in enumerate(source.splitlines(), 1):
        if line.startswith("```"):
            inside = not inside
        elif not inside:
            yield number, line


@pytest.mark.parametrize("folder", [".", *FOLDERS])
def test_no_text_needs_a_second_reading(folder: str) -> None:
    """No page, docstring, help or message has one of the patterns."""
    found = []
    for name in files(folder):
        for number, text in texts(ROOT / name):
            for allowed in ALLOWED.get(name, ()):
                text = text.replace(allowed, "")  # noqa: PLW2901 - what is allowed does not count
            for pattern, better in PATTERNS.items():
                if match := re.search(pattern, text, re.IGNORECASE):
                    found.append(f"{name}:{number}: '{match[0]}' in '{text[:120]}': write: {better}")
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "finds"), [("jobs who wait", True), ("It goes on.", True), ("jobs that wait", False), ("on the go", False)]
)
def test_patterns_find_what_they_name(text: str, finds: bool) -> None:
    """Each wrong text is found, and a plain one is not."""
    assert any(re.search(pattern, text, re.IGNORECASE) for pattern in PATTERNS) == finds

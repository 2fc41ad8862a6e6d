"""Fixtures of the tests of traces."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.load import load

#: A job line; tests replace fields of it.
FIELDS = ["1", "0", "-1", "100", "4", "-1", "-1", "4", "200", "-1", "1", "7", "2", "-1", "-1", "-1", "-1", "-1"]


@pytest.fixture
def job_line() -> Callable[..., str]:
    """Return a function that makes an SWF line from changed fields, numbered from 1: job_line({4: 50})."""

    def make(changes: dict[int, object] | None = None) -> str:
        fields = list(FIELDS)
        for number, value in (changes or {}).items():
            fields[number - 1] = str(value)
        return " ".join(fields) + "\n"

    return make


@pytest.fixture
def refused(tmp_path: Path) -> Callable[..., str]:
    """Return a function that loads the given content and returns the message, with FILE for the path."""

    def load_it(content: bytes | str, name: str = "x.swf", **options: bool | str) -> str:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        with pytest.raises(TraceError) as caught:
            load(path, **options)
        return str(caught.value).replace(str(path), "FILE")

    return load_it

"""Errors for JSON that is malformed or has the wrong shape."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from pipistrelle.traces.errors import TraceError

_BYTE = re.compile(r" \(byte (\d+)\)$")
_PATH = re.compile(r" - at `(?:key in )?(.*)`$")


@contextmanager
def json_faults(data: bytes | msgspec.Raw, where: str, top: str = "") -> Iterator[None]:
    """Convert decoding errors of `data` to TraceErrors.

    Args:
        top: the beginning of each value's path in messages.
    """
    try:
        yield
    except msgspec.ValidationError as error:
        raise shape_fault(error, where + top) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _json_fault(error, bytes(data), where) from error
    except RecursionError as error:
        raise depth_fault(where) from error


def _json_fault(error: msgspec.DecodeError | UnicodeDecodeError, data: bytes, where: str) -> TraceError:
    """Return the error for `data` that is not JSON, with line and column."""
    if isinstance(error, UnicodeDecodeError):
        return TraceError(
            "is not UTF-8 text",
            where=_position(data, error.start, where),
            found=f"byte 0x{data[error.start]:02x}",
            hint="Save the file as UTF-8.",
        )
    text = str(error).removeprefix("JSON is malformed: ")
    match = _BYTE.search(text)
    return TraceError(
        "is not valid JSON",
        where=_position(data, int(match[1]) if match else len(data), where),
        found=_BYTE.sub("", text),
        hint="Correct the text there, or just before.",
    )


def _position(data: bytes, offset: int, where: str) -> str:
    before = data[:offset]
    column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8", "replace")) + 1
    return f"{where}, line {before.count(10) + 1}, column {column}"


def shape_fault(error: msgspec.ValidationError, where: str) -> TraceError:
    """Return the error for a wrong type or a missing field, with the value's path."""
    text = str(error)
    match = _PATH.search(text)
    return TraceError(
        _PATH.sub("", text).replace("`", "'"),
        where=where + match[1][1:] if match else where,
        hint="'pipistrelle help workloads' shows the format.",
    )


def depth_fault(where: str) -> TraceError:
    """Return the error for JSON that is nested too deeply."""
    return TraceError("the JSON is nested too deeply", where=where, hint="Remove what no job needs.")

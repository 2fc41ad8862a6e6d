"""Give every reader large hostile files, and check its time and memory.

The files have up to 10 MB. The exit code is 1 if a limit is exceeded. Some files are those of hostile_readers.py, made
long: their lines are repeated, unchanged or with other numbers. Other files are one endless line or number, only line
breaks, quotes, commas or dots, or deeply nested. Such content is tried alone and after a valid file. Compressed files
unpack to the largest size that their readers allow. The limits and exit codes are those of hostile_readers.py.

    python benchmarks/hostile_sizes.py [--megabytes 10] [--only READER] [--shape SHAPE] [--part 1/4] [--minutes 7]
"""

import argparse
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from hostile.readers import LIMIT_S, READERS, Reader, answer, check_whole, fault, make, packed, sealed, unpacked, used

_NUMBER = re.compile(rb"\d+")


def _again(content: bytes, size: int) -> bytes:
    return content * max(1, size // max(1, len(content)))


def _renumbered(content: bytes, size: int) -> bytes:
    """Append lines with increased numbers to a file until it has ``size`` bytes.

    The lines are those of the second half of the file.
    """
    lines = content.splitlines(keepends=True) or [b"\n"]
    some = lines[len(lines) // 2 :] or lines
    parts, length, number = [content], len(content), 0
    while length < size:
        number += 1
        line = some[number % len(some)]
        line = line if line.endswith(b"\n") else line + b"\n"
        parts.append(_NUMBER.sub(lambda found, add=number: b"%d" % (int(found[0][:12]) + add), line))  # type: ignore[misc]
        length += len(parts[-1])
    return b"".join(parts)


def _filled(filler: bytes) -> Callable[[bytes, int], bytes]:
    return lambda _, size: _again(filler, size)


def _after(filler: bytes) -> Callable[[bytes, int], bytes]:
    return lambda content, size: content + _again(filler, size)


def _inside(filler: bytes) -> Callable[[bytes, int], bytes]:
    """Return a function that inserts repeated ``filler`` in the middle of a file.

    The filler is inserted after a character that opens a value.
    """

    def put(content: bytes, size: int) -> bytes:
        found = re.search(rb"[\[{=,:(>|]", content[len(content) // 2 :])
        at = len(content) // 2 + (found.end() if found else 0)
        return content[:at] + _again(filler, size) + content[at:]

    return put


def _body(filler: bytes) -> Callable[[bytes, int], bytes]:
    """Return a function that inserts a list of repeated ``filler`` into a file.

    The list is inserted before the last closing bracket.
    """

    def put(content: bytes, size: int) -> bytes:
        at = max(content.rfind(b"]"), content.rfind(b"}"))
        return content[:at] + b',"y":[' + _again(filler, size) + b"0]" + content[at:]

    return put


def _quoted(content: bytes, size: int) -> bytes:
    """Insert a word of ``size`` letters into the first pair of quotes in a file."""
    at = content.find(b'"') + 1
    return content[:at] + b"a" * size + content[at:]


def _hard(content: bytes, size: int) -> bytes:
    """Return content that takes much memory to parse.

    It is noise followed by many small JSON objects. Once parsed, the objects take many times the memory of the
    compressed file.
    """
    head, newline, _ = content.partition(b"\n")
    noise = random.Random(1).randbytes(size // 7).hex().encode()
    return head + newline + b'{"x": "%b", "y": [%b{}]}' % (noise, _again(b"{},", 6 * size))


#: {shape: makes a file of a valid one and a size in bytes}
SHAPES: dict[str, Callable[[bytes, int], bytes]] = {
    "again": _again,
    "renumbered": _renumbered,
    "a word": _filled(b"a"),
    "lines": _after(b"\n"),
    "words": _after(b"a=1 "),
    "cells": _after(b",|;"),
    "dots": _after(b"a."),
    "quotes": _after(b'"'),
    "brackets": _after(b"["),
    "objects": _inside(b'{"a":'),
    "lists": _inside(b"["),
    "elements": _inside(b"<a>"),
    "empty objects": _inside(b"{},"),
    "elements of a list": _body(b"{},"),
    "digits": _inside(b"9"),
    "ranges": _inside(b"0-99999999,"),
    "names": _inside(b"n[0-999],"),
    "long word": _quoted,
    "includes": _after(b"\nInclude slurm.conf"),
    "a long line": _after(b'a b="c" '),
    "NUL bytes": _after(b"\0"),
    "keys": _after(b"\na.a.a.a.a.a.a.a.a=1"),
    "rows of a table": _after(b"\n[[a.b]]\n"),
    "wide hostlists": _inside(b"n[1-999999999],"),
    "hostlists of two ranges": _inside(b"n[1-999]m[1-999],"),
    "open brackets of hostlists": _inside(b"n[1-9,"),
    "bars": _after(b"1|"),
    "no text": _after("\xe9".encode("latin-1")),
}
_PACKED = {"objects that unpack": _hard}
#: (reader, shape) of valid logs that are simulated: the time is that of a run of many jobs, not of reading
_SIMULATED: Final = (
    ("Slurm events run", "again"),
    ("Slurm events run", "renumbered"),
    ("recorded jobs", "renumbered"),
)


def tries(megabytes: float) -> Iterator[tuple[str, str, Reader, Callable[[bytes], bytes]]]:
    """Yield the hostile files to try, each with its reader.

    Yields (name of the reader, shape, reader, function that makes the hostile content from the valid one).
    """
    for name, reader in READERS.items():
        is_packed = reader.file.endswith((".gz", ".xz")) or name == "snapshot"
        for shape, make_it in (SHAPES | _PACKED if is_packed else SHAPES).items():
            if (name, shape) in _SIMULATED:
                continue
            yield name, shape, reader, lambda content, make_it=make_it: make_it(content, int(megabytes * 1e6))  # type: ignore[misc]


def main() -> int:
    """Carry out the benchmark; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=10.0, help="size of the files after unpacking")
    parser.add_argument("--only", choices=READERS, help="the files of one reader only")
    parser.add_argument("--shape", choices=SHAPES | _PACKED, help="the files of one shape only")
    parser.add_argument("--seed", type=int, default=1, help="decides the order of the files")
    parser.add_argument("--part", default="1/1", help="a part of all files, such as 2/4")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after this time")
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    files = [*tries(options.megabytes)]
    random.Random(options.seed).shuffle(files)
    wrong = done = 0
    longest, largest = 0.0, ""
    with tempfile.TemporaryDirectory(prefix="pipistrelle-") as folder:
        whole, home = Path(folder) / "whole", Path(folder) / "home"
        whole.mkdir()
        if found := make(whole) or "; ".join(check_whole(whole, home, READERS if options.only is None else {})):
            sys.exit(found)
        end = time.monotonic() + 60 * options.minutes
        for number, (name, shape, reader, make_it) in enumerate(files):
            unwanted = options.only not in (None, name) or options.shape not in (None, shape)
            if unwanted or number % parts != part - 1 or time.monotonic() > end:
                continue
            target = reader.place(whole)
            content = make_it(unpacked(target.name, target.read_bytes()))
            content = packed(target.name, sealed(content) if name == "snapshot" else content)
            began, _ = used()
            code, said = answer(whole, home, reader, lambda path, content=content: path.write_bytes(content))  # type: ignore[misc]
            took = used()[0] - began
            done += 1
            if took > longest:
                longest, largest = took, f"{name}, {shape}"
            if found := fault(code, said):
                wrong += 1
                print(f"{name}, {shape}, {took:.1f} s: {found}", flush=True)
            elif took > LIMIT_S / 2:
                print(f"{name}, {shape}: exit code {code} after {took:.1f} s", file=sys.stderr, flush=True)
    print(f"the longest took {longest:.1f} s of processor time: {largest}", file=sys.stderr)
    print(f"{done} files, {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())

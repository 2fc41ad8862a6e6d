"""Give long input files, designed to cost time or memory, to every command that reads files.

The valid files of hostile_readers.py are extended to 10 MB: lines repeated as they are or with other numbers, a very
long line, word or number, only line breaks, quotes, commas or dots, deep nesting. Compressed files have this size
after unpacking. The limits and the allowed exit codes are those of hostile_readers.py. The exit code is 1 if a command
does not comply.

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

from hostile.readers import LIMIT_S, READERS, Reader, answer, check_whole, fault, make, packed, sealed, unpacked, used

_NUMBER = re.compile(rb"\d+")


def _again(content: bytes, size: int) -> bytes:
    return content * max(1, size // max(1, len(content)))


def _renumbered(content: bytes, size: int) -> bytes:
    """Extend the content to ``size`` bytes: repeat its second half with increasing numbers."""
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
    """Return a function that inserts the filler near the middle, where a value begins."""

    def put(content: bytes, size: int) -> bytes:
        found = re.search(rb"[\[{=,:(>|]", content[len(content) // 2 :])
        at = len(content) // 2 + (found.end() if found else 0)
        return content[:at] + _again(filler, size) + content[at:]

    return put


def _body(filler: bytes) -> Callable[[bytes, int], bytes]:
    """Return a function that inserts the filler as a JSON list before the last bracket."""

    def put(content: bytes, size: int) -> bytes:
        at = max(content.rfind(b"]"), content.rfind(b"}"))
        return content[:at] + b',"y":[' + _again(filler, size) + b"0]" + content[at:]

    return put


def _quoted(content: bytes, size: int) -> bytes:
    """Insert a word of ``size`` letters after the first quotation mark."""
    at = content.find(b'"') + 1
    return content[:at] + b"a" * size + content[at:]


def _hard(content: bytes, size: int) -> bytes:
    """Return JSON of random digits and many empty objects, which compresses well."""
    head, newline, _ = content.partition(b"\n")
    noise = random.Random(1).randbytes(size // 7).hex().encode()
    return head + newline + b'{"x": "%b", "y": [%b{}]}' % (noise, _again(b"{},", 6 * size))


#: {name: shape}; a shape is a function of a valid file and a size (bytes) that returns a long file
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
}
_PACKED = {"objects that unpack": _hard}


def tries(megabytes: float) -> Iterator[tuple[str, str, Reader, Callable[[bytes], bytes]]]:
    """Yield (reader's name, shape's name, reader, function from the valid file to the long one)."""
    for name, reader in READERS.items():
        is_packed = reader.file.endswith((".gz", ".xz")) or name == "snapshot"
        for shape, make_it in (SHAPES | _PACKED if is_packed else SHAPES).items():
            yield name, shape, reader, lambda content, make_it=make_it: make_it(content, int(megabytes * 1e6))  # type: ignore[misc]


def main() -> int:
    """Try the chosen files and print the failures; return the exit code."""
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
            code, said = answer(whole, home, reader, content)
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

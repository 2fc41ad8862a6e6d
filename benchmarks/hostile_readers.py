"""Fuzz the file readers with damaged input files.

Every command that reads files is tested. One valid file of each kind is created first. Each trial then damages a copy:
it changes bytes or the encoding, repeats or removes lines, replaces words by huge or negative numbers, long text or
wide hostlists, truncates the file, or pastes in part of another file. The command must end within 10 s of processor
time and 1 GiB of memory, with an exit code of docs/reference/cli.md. If it fails, it must print one short message and
no traceback. The exit code of this script is 1 if a command does not comply.

    python benchmarks/hostile_readers.py [--files 2000] [--seed 1] [--only READER]
"""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from operator import itemgetter
from pathlib import Path

from hostile.readers import READERS, answer, check_whole, fault, make, packed, sealed, unpacked, used

_HOSTILE = (
    b"-1", b"0", b"1e308", b"1e-320", b"nan", b"inf", b"99999999999999999999", b"\x00", b"\xff\xfe", b"'", b'"', b"[",
    b"{", b"\n", b",", b"=", b"../../../etc/passwd", b"/dev/zero", b"\x1b[2J", b"\xe2\x80\xae", b"null", b"true",
    b"a" * 70_000, b"n[1-999999999]", b"n[0-9999][0-9999]", b"1-99999999", b"\nInclude slurm.conf\n", b"\r",
    b"a." * 40, b"/etc/passwd", b"9" * 5000, "\u0663\u00b2".encode(), b"1_[0-99999999]%2", b"1-00:00:00", b"#", b"\\",
)  # fmt: skip
#: length of the longest damaged file (bytes)
_LONGEST = 10 << 20


def damaged(content: bytes, other: bytes, rng: random.Random) -> bytes:
    """Return the content with one to four random changes.

    Parts of ``other`` may be pasted in.
    """
    for _ in range(rng.randint(1, 4)):
        lines = content.splitlines(keepends=True) or [b""]
        at, end = sorted((rng.randint(0, len(content)), rng.randint(0, len(content))))
        line = rng.randrange(len(lines))
        match rng.randrange(10):
            case 0:
                content = content[:at]
            case 1:
                content = content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :]
            case 2:
                content = content[:at] + rng.choice(_HOSTILE) + content[at + rng.randint(0, 3) :]
            case 3:
                times = min(rng.choice((1, 3, 1000)), 1 + _LONGEST // (1 + len(lines[line])))
                content = b"".join([*lines[: line + 1], lines[line] * times, *lines[line + 1 :]])
            case 4:
                content = b"".join([*lines[:line], *lines[line + 1 :]])
            case 5:
                content = content[:at] + content[end:]
            case 6:
                content = content[:at] + other[: rng.randint(0, len(other))] + content[at:]
            case 7:
                content = content[:at] + content[at : at + 9] * rng.choice((2, 5000)) + content[at:]
            case 8:
                text = content.decode("utf-8", "replace")
                content = text.encode(rng.choice(("utf-16", "utf-8-sig", "cp037", "utf-7")), "replace")
            case _:
                cells = lines[line].replace(b",", b" ").replace(b":", b" ").replace(b'"', b" ").split()
                word = rng.choice(cells or [b" "])
                content = content.replace(word, rng.choice(_HOSTILE), rng.choice((1, 1, 50)))
    return content[:_LONGEST]


def main() -> int:
    """Fuzz the readers and print the failures; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=2000, help="number of damaged files")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=READERS, help="damage the files of one reader only")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after this time")
    options = parser.parse_args()
    readers = {options.only: READERS[options.only]} if options.only else READERS
    codes: Counter[int | None] = Counter()
    wrong = 0
    tried: Counter[str] = Counter()
    slowest: list[tuple[float, str, int, int | None]] = []
    with tempfile.TemporaryDirectory(prefix="pipistrelle-") as folder:
        whole, home = Path(folder) / "whole", Path(folder) / "home"
        whole.mkdir()
        if found := make(whole) or "; ".join(check_whole(whole, home, readers)):
            sys.exit(found)
        end = time.monotonic() + 60 * options.minutes
        others = [reader.place(whole).read_bytes() for reader in READERS.values()]
        for number in range(options.files):
            if time.monotonic() > end:
                options.files = number
                break
            name = [*readers][number % len(readers)]
            reader = readers[name]
            rng = random.Random(f"{options.seed} {name} {number}")
            target = reader.place(whole)
            content = target.read_bytes()
            if rng.random() < 0.7:  # damage the content inside a compressed file, which reaches the actual reader
                content = damaged(unpacked(target.name, content), rng.choice(others), rng)
                content = packed(target.name, sealed(content) if name == "snapshot" else content)
            else:
                content = damaged(content, rng.choice(others), rng)
            began, _ = used()
            code, said = answer(whole, home, reader, lambda path, content=content: path.write_bytes(content))  # type: ignore[misc]
            slowest = sorted([*slowest, (used()[0] - began, name, number, code)], key=itemgetter(0), reverse=True)[:10]
            codes[code] += 1
            tried[name] += 1
            if found := fault(code, said):
                wrong += 1
                kept = Path(tempfile.gettempdir()) / f"pipistrelle-hostile-{options.seed}-{number}{target.suffix}"
                kept.write_bytes(content)
                print(f"{name}, file {number}, kept as {kept}: {found}", flush=True)
    told = ", ".join(f"{code}: {count}" for code, count in sorted(codes.items(), key=str))
    for took, name, number, code in slowest:
        print(f"{took:.1f} s of processor time: {name}, file {number}, exit code {code}", file=sys.stderr)
    few, many = min(tried.values(), default=0), max(tried.values(), default=0)
    print(f"{len(tried)} readers, {few} to {many} files each; exit codes {told}", file=sys.stderr)
    print(f"{options.files} files, {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())

"""Replace every input file by something else, and check what its reader does.

A pipe has no writer. A device never ends. A link leads to a file outside the folder, whose content is a secret. If the
command line does not name the file itself, no message may quote the secret. In further trials the file stays as it is,
except for a new line ``Include``, which names a pipe, device, folder or link beside the file. The limits and exit codes
are those of hostile_readers.py. The exit code is 1 if a command does not comply.

    python benchmarks/hostile_places.py [--only READER] [--place PLACE] [--part 1/4]
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from hostile.readers import CODES, READERS, answer, check_whole, fault, make

#: a word of the file outside the folder
OUTSIDE = "Tr0ub4dor"
_Put = Callable[[Path, Path], object]


def _instead(make_it: _Put) -> _Put:
    """Return a function that replaces a file by something else."""

    def put(path: Path, secret: Path) -> None:
        path.unlink()
        make_it(path, secret)

    return put


def _included(make_it: _Put) -> _Put:
    """Return a function that adds an include to a file.

    It makes something beside the file, and appends a line to the file that includes it.
    """

    def put(path: Path, secret: Path) -> None:
        make_it(path.parent / "beside.conf", secret)
        with path.open("ab") as file:
            file.write(b"\nInclude beside.conf\n")

    return put


def _link(target: str) -> _Put:
    return lambda path, secret: path.symlink_to(target)


def _pipe(path: Path, _: Path) -> None:
    os.mkfifo(path)


def _secret(path: Path, secret: Path) -> None:
    path.symlink_to(secret)


#: {place: puts it in the place of a file, given the path of the file and of the file outside}
PLACES: dict[str, _Put] = {
    "pipe": _instead(_pipe),
    "device": _instead(_link("/dev/zero")),
    "terminal": _instead(_link("/dev/tty")),
    "folder": _instead(lambda path, _: path.mkdir()),
    "link": _instead(_secret),
    "link to nothing": _instead(_link("nothing")),
    "link to itself": _instead(lambda path, _: path.symlink_to(path.name)),
}
#: the same beside a file that includes it
INCLUDES: dict[str, _Put] = {
    "includes a pipe": _included(_pipe),
    "includes a device": _included(_link("/dev/zero")),
    "includes a folder": _included(lambda path, _: path.mkdir()),
    "includes a link": _included(_secret),
    "includes itself": _included(_link("slurm.conf")),
    "includes a path outside": lambda path, secret: path.write_bytes(
        path.read_bytes() + b"\nInclude %b\n" % os.fsencode(secret)
    ),
}


def main() -> int:
    """Carry out the benchmark; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=READERS, help="the file of one reader only")
    parser.add_argument("--place", choices=PLACES | INCLUDES, help="this replacement only")
    parser.add_argument("--part", default="1/1", help="a part of all tries, such as 2/4")
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    tries = [(name, place) for name in READERS for place in PLACES | INCLUDES]
    tries = [one for one in tries if options.only in (None, one[0]) and options.place in (None, one[1])]
    wrong = done = 0
    with tempfile.TemporaryDirectory(prefix="pipistrelle-") as folder:
        whole, home, secret = Path(folder) / "whole", Path(folder) / "home", Path(folder) / "secret"
        whole.mkdir()
        secret.write_text(f"root:{OUTSIDE}:0:0:root:/root:/bin/sh\n{OUTSIDE}=1 {OUTSIDE}\n", encoding="ascii")
        if found := make(whole) or "; ".join(check_whole(whole, home, READERS if options.only is None else {})):
            sys.exit(found)
        for name, place in tries[part - 1 :: parts]:
            reader = READERS[name]
            code, said = answer(whole, home, reader, lambda path, place=place: (PLACES | INCLUDES)[place](path, secret))  # type: ignore[misc]
            done += 1
            # 6: a pipe in the place of a journal cannot be written
            found = fault(code, said, codes=CODES | {6})
            if not found and OUTSIDE in said and (place in INCLUDES or reader.file not in reader.words):
                found = f"quotes a file outside the folder: {said[-300:]!r}"
            if found:
                wrong += 1
                print(f"{name}, {place}: {found}", flush=True)
    print(f"{done} files, {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())

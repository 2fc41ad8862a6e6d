"""Compare the outputs of reference runs with the digests in canonical.toml.

The digests are SHA-256.

    python benchmarks/canonical.py [NAME ...] [--quick] [--jobs 2] [--python OLD/bin/python] [--keep FOLDER] [--update]

`canonical.toml` describes the runs. Each run is a list of `pipistrelle` command lines, executed one after another in
the run's own folder. A line that begins with ``pipistrelle-batsim`` runs that program.

- A line that ends with ``> FILE`` writes its output to FILE. Other output holds wall-clock times and is discarded.
- A line that ends with ``&`` runs in the background; the run waits for it at the end.
- ``$NAME`` is a real log or a recording; runs whose logs are missing are skipped.
- ``tap SEEN LISTEN PEER`` relays frames between a scheduler and a server, and writes them to the file SEEN. One side
    connects to LISTEN. PEER is the endpoint of the other side, or a Batsim recording that supplies the answers.

All files in a run's folder are compared, except `out_command.json` and `out_explain.index`, which are not results.
Version numbers in the files are ignored. The environment variables PIPISTRELLE_TRACES and PIPISTRELLE_BATSIM4 name
the folders of logs, as in the tests.

Only the command line is used, so ``--python`` can compare another version of the package. Digests depend on the
versions of numpy and the C library. If these differ, run ``--update`` with the old version of the package first. The
exit code is 1 if any run differs.
"""

import argparse
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

HERE = Path(__file__).resolve()
DATA = HERE.with_suffix(".toml")
#: line of canonical.toml after which the digests begin; ``--update`` replaces everything after it
MARK = "# -- digests, written by --update "
#: {name of a log folder in canonical.toml: its real path, from the environment variable or the default}
FOLDERS = {
    "traces": Path(os.environ.get("PIPISTRELLE_TRACES", HERE.parents[2] / "shared" / "traces")),
    "batsim4": Path(os.environ.get("PIPISTRELLE_BATSIM4", HERE.parents[2] / "shared" / "batsim4")),
}
#: version numbers in out_config.json, out_schedule.csv, HELLO, WELCOME and the like
VERSIONS = re.compile(rb'"versions": ?\{[^}]*\}|"version": ?"[^"]*"|pipistrelle \d+\.[\w.+]*|"pipistrelle": ?"\d[^"]*"')
LIMIT = 600.0  # time limit of a line (s)

Digests = dict[str, str]


@dataclass(frozen=True)
class Run:
    """A reference run.

    Attributes:
        lines: the command lines.
        missing: paths of logs that the run needs but that do not exist.
        files: {name: content} of files to create before the run.
    """

    name: str
    lines: list[str]
    missing: list[str]
    files: dict[str, str]


@dataclass(frozen=True)
class Outcome:
    """The digests of a run's files, its duration (s) and its error text.

    The error text is empty if the run succeeded.
    """

    digests: Digests
    seconds: float
    trouble: str = ""


def runs_of(data: dict[str, Any]) -> dict[str, Run]:
    """Return {name: reference run} from the content of canonical.toml.

    The paths of logs are inserted into the command lines.
    """
    runs = {}
    for name, lines in data["runs"].items():
        text = "\n".join(lines)
        logs = {log: path for log, path in data["logs"].items() if re.search(rf"\${log}\b", text)}
        files = {file: content for file, content in data["files"].items() if re.search(rf"\b{re.escape(file)}", text)}
        missing = [path for path in logs.values() if not real(path).exists()]
        runs[name] = Run(name, [Template(line).substitute(logs) for line in lines], missing, files)
    return runs


def real(path: str) -> Path:
    """Return the path of a real log on this computer.

    ``path`` is the log's name in canonical.toml, such as ``traces/LOG.swf.gz``.
    """
    folder, _, file = path.partition("/")
    return FOLDERS[folder] / file


def play(run: Run, python: str, folder: Path) -> Outcome:
    """Execute a run in an empty folder, with the Python interpreter ``python``."""
    for name, place in FOLDERS.items():
        (folder / name).symlink_to(place.resolve())
    for name, content in run.files.items():
        (folder / name).write_text(content)
    began = time.perf_counter()
    trouble = ""
    with ExitStack() as begun:
        beside = []
        for line in run.lines:
            process = begun.enter_context(started(line, python, folder))
            begun.callback(process.kill)  # if it still runs after the other lines have ended
            beside.append((line, process))
            if not line.endswith("&") and (trouble := awaited(*beside.pop())):
                break
        else:
            trouble = next(filter(None, (awaited(*one) for one in beside)), "")
    seconds = time.perf_counter() - began
    if trouble:
        trouble += "".join(f"\n    {told}" for told in (folder / ".errors").read_text().splitlines()[-3:])
    digests = {name: digest(folder / name) for name in sorted(left(folder)) if name not in run.files}
    return Outcome(digests, seconds, trouble)


def started(line: str, python: str, folder: Path) -> subprocess.Popen[bytes]:
    """Start the process of one command line of a run.

    Its standard error is appended to the file ``.errors``.
    """
    command, _, output = line.removesuffix("&").partition(" > ")
    words = shlex.split(command)
    if words[0] == "tap":
        whole = [sys.executable, str(HERE), "--tap", *words[1:]]
    elif words[0] == "pipistrelle-batsim":
        whole = [python, "-c", "from pipistrelle.cli.__main__ import batsim; batsim()", *words[1:]]
    else:
        whole = [python, "-m", "pipistrelle.cli", *words]
    with (folder / (output.strip() or os.devnull)).open("w") as out, (folder / ".errors").open("a") as errors:
        return subprocess.Popen(whole, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=errors)


def awaited(line: str, process: subprocess.Popen[bytes]) -> str:
    """Wait until the process of a command line ends, for a limited time.

    Return an error text, empty if the command succeeded.
    """
    try:
        code = process.wait(LIMIT)
    except subprocess.TimeoutExpired:
        return f"more than {LIMIT:.0f} s: {line}"
    return f"exit code {code}: {line}" if code else ""


def left(folder: Path) -> Iterator[str]:
    """Yield the relative paths of the files to compare in a run's folder.

    Files in subfolders are included. Links to folders, names that begin with a dot, and files that are not results are
    skipped.
    """
    for parent, _, names in os.walk(folder):
        for name in names:
            path = Path(parent) / name
            if name not in ("out_command.json", "out_explain.index") and not name.startswith(".") and path.is_file():
                yield path.relative_to(folder).as_posix()


def digest(path: Path) -> str:
    """Return the SHA-256 digest of a file, ignoring version numbers in it."""
    return hashlib.sha256(VERSIONS.sub(b"(version)", path.read_bytes())).hexdigest()


def tap(seen: str, listen: str, peer: str) -> None:
    """Relay frames between two endpoints until the simulation ends.

    Each request is written to the file ``seen`` after ``> ``, each answer after ``< ``.

    Args:
        seen: path of the file to write.
        listen: endpoint to which one side connects.
        peer: endpoint of the other side, or path of a Batsim recording that supplies the answers.
    """
    import zmq

    context = zmq.Context()
    asks, answers = context.socket(zmq.REP), context.socket(zmq.REQ)
    asks.bind(listen)
    recorded: Iterator[str] | None = None
    if "://" in peer:
        answers.connect(peer)
    else:
        frames = map(json.loads, Path(peer).read_text().splitlines())
        recorded = iter([text for side, text in frames if side == "sched->batsim"])
    with Path(seen).open("wb") as file:
        over = False
        while not over:
            asked = asks.recv()
            if recorded is None:
                answers.send(asked)
                answer = answers.recv()
            else:
                answer = next(recorded).encode()
            asks.send(answer)
            file.write(b"> " + asked + b"\n< " + answer + b"\n")
            over = b"SIMULATION_ENDS" in asked + answer
    asks.close()
    answers.close()
    context.term()  # returns only after the last frame is sent


def written(digests: dict[str, Digests]) -> None:
    """Write the digests into canonical.toml, in place of the earlier ones."""
    head = DATA.read_text().partition(MARK)[0]
    tables = "".join(
        f"\n[digests.{name}]\n" + "".join(f'"{file}" = "{value}"\n' for file, value in files.items())
        for name, files in digests.items()
    )
    DATA.write_text(head + MARK.ljust(119, "-") + "\n" + tables)


def verdict(outcome: Outcome, kept: Digests | None) -> str:
    """Compare a run's digests with those kept in canonical.toml.

    Return ``same``, or what differs or failed.
    """
    if outcome.trouble:
        return f"FAILED, {outcome.trouble}"
    if kept is None:
        return "new"
    found = outcome.digests
    names = sorted(name for name in {*kept, *found} if kept.get(name) != found.get(name))
    return "same" if not names else f"DIFFERS: {', '.join(names)}"


def main() -> None:
    """Run the chosen runs, and compare or update their digests."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="runs; default: all")
    parser.add_argument("--update", action="store_true", help="keep the digests as they are now")
    parser.add_argument("--quick", action="store_true", help="only runs that take less than about 5 s")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
    parser.add_argument("--python", default=sys.executable, help="the interpreter whose pipistrelle is run")
    parser.add_argument("--keep", type=Path, help="an empty folder for the outputs, one folder per run")
    parser.add_argument("--tap", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.tap:
        tap(*arguments.tap)
        return
    data = tomllib.loads(DATA.read_text())
    runs, kept = runs_of(data), data.get("digests", {})
    if unknown := set(arguments.names) - set(runs):
        parser.error(f"there is no run {', '.join(sorted(unknown))}; there are {', '.join(runs)}")
    slow = data["slow"]["runs"]
    chosen = [runs[name] for name in arguments.names or [*slow, *(name for name in runs if name not in slow)]]
    if arguments.quick:
        chosen = [run for run in chosen if run.name not in slow]
    wrong, begun = 0, {}
    with tempfile.TemporaryDirectory() as spare, ThreadPoolExecutor(arguments.jobs) as pool:
        for run in chosen:
            if run.missing:
                print(f"{run.name:26} skipped: there is no {', '.join(run.missing)}")
                continue
            folder = (arguments.keep or Path(spare)).resolve() / run.name
            folder.mkdir(parents=True)
            begun[pool.submit(play, run, arguments.python, folder)] = run.name
        for future in as_completed(begun):
            name, outcome = begun[future], future.result()
            said = verdict(outcome, kept.get(name))
            print(f"{name:26} {outcome.seconds:6.1f} s  {said}", flush=True)
            if arguments.update and not outcome.trouble:
                kept[name] = outcome.digests
            elif said != "same":
                wrong += 1
    if arguments.update:
        written({name: kept[name] for name in runs if name in kept})
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()

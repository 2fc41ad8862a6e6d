"""Give damaged and hostile files to every reader; exit with code 1 if one of them is not answered as documented.

A file of each kind that a command reads is made once. Then bytes are changed, lines are repeated, removed or exchanged,
numbers become huge or negative, words become long, the file is cut, or part of another file is pasted in. The command
must end within 10 s of processor time and 1 GB, with an exit code of docs/reference/cli.md. If it fails, it must print
one message and no traceback.

    python benchmarks/hostile_readers.py [--files 2000] [--seed 1] [--only READER]
"""

import argparse
import gzip
import lzma
import random
import resource
import shutil
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path

from hostile.child import command
from hostile.writers import MADE, prepare

#: limits of one command: processor time (s), and bytes of address space
LIMIT_S, LIMIT_BYTES = 10, 1 << 30
#: how long it may take on a busy machine (s)
_PATIENCE_S = 100.0
#: exit codes that an invalid input may give: valid after all, a difference, invalid, the scheduler's fault, a stall
CODES = frozenset({0, 1, 2, 3, 4, 5})
_EXAMPLES = Path(__file__).resolve().parents[1] / "docs" / "examples"
_REPLAY = ("check", "replay")
_FILL = ("workload", "fill", "--platform", "nodes.csv", "--workload", "pods.csv", "--placement", "fgd", "--seed", "1")
_RUN = ("run", "--quiet", "--in-process", "--overwrite", "--out", "out")

#: {reader: (the file that is damaged, the words of the command)}
READERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "SWF": ("made.swf", ("validate", "made.swf")),
    "SWF gzip": ("made.swf.gz", ("validate", "made.swf.gz")),
    "SWF xz": ("made.swf.xz", (*_RUN, "-w", "made.swf.xz", "-p", "tiny")),
    "Batsim workload": ("jobs.json", ("validate", "jobs.json")),
    "Batsim run": ("made.json", (*_RUN, "-w", "made.json", "-p", "tiny")),
    "sacct": ("made.sacct", ("validate", "made.sacct")),
    "Maui trace": ("made.maui", ("validate", "made.maui")),
    "SimGrid": ("cluster.xml", ("validate", "cluster.xml")),
    "platform": ("machine.toml", ("validate", "machine.toml")),
    "table of nodes": ("table.csv", ("validate", "machine.toml")),
    "nodes of a fill": ("nodes.csv", _FILL),
    "pods of a fill": ("pods.csv", _FILL),
    "outages": ("down.csv", (*_RUN, "-w", "made.swf", "-p", "tiny", "--outages", "down.csv")),
    "outages described": ("down.csv", ("failures", "show", "down.csv")),
    "run": ("one/out_command.json", ("run", "one/out_command.json", "--quiet", "--overwrite", "--out", "out")),
    "run in TOML": ("run.toml", ("validate", "run.toml")),
    "study": ("study.toml", ("validate", "study.toml")),
    "journal": ("study/journal.jsonl", ("study", "run", "study.toml", "-o", "study", "--jobs", "1")),
    "table of trials": ("study/trials.parquet", ("study", "compare", "study", "--metric", "mean_wait")),
    "maui.cfg": ("maui.cfg", (*_RUN, "-w", "made.swf", "-p", "tiny", "--scheduler", "maui", "--config", "maui.cfg")),
    "jobs of a run": ("one/out_jobs.csv", ("compare", "one", "two")),
    "decisions of a run": ("one/out_decisions.csv", ("explain", "job", "one", "w0!5")),
    "states of a run": ("one/out_machine_states.csv", ("report", "one", "--out", "page.html")),
    "summary of a run": ("one/out_summary.json", ("compare", "one", "two")),
    "configuration of a run": ("one/out_config.json", ("report", "one", "--out", "page.html")),
    "session": ("played.jsonl", (*_REPLAY, "played.jsonl", "--server")),
    "session to a policy": ("played.jsonl.gz", (*_REPLAY, "played.jsonl.gz", "--scheduler", "easy", "--in-process")),
    "snapshot": ("SNAPSHOT", ("resume", "kept", "--in-process", "--quiet", "--out", "out", "--overwrite")),
    "scheduler preset": ("preset.toml", (*_RUN, "-w", "made.swf", "-p", "tiny", "--scheduler", "preset.toml")),
    "case": ("cases/CASE", ("check", "cases", "cases")),
    "public key": ("keys/server.pub", ("schedule", "easy", "--connect", "tcp://127.0.0.1:9", "--hello-timeout", "0.1",
                   "--curve", "keys/server.key", "--server-key", "keys/server.pub")),
}  # fmt: skip
_MORE = (
    ("workload", "convert", "made.swf", "made.json"),
    ("workload", "convert", "made.swf", "made.sacct"),
    ("workload", "convert", "made.swf", "made.maui"),
    (*_RUN, "-w", "made.swf", "-p", "tiny", "--record", "played.jsonl"),
    (*_RUN, "-w", "made.swf", "-p", "tiny", "--record", "played.jsonl.gz"),
    ("new", "keys", "keys", "--name", "server"),
)
_FILES = {
    "machine.toml": 'name = "x"\nnode_table = "table.csv"\n[[pools]]\nname = "p"\nnodes = 4\nnames = "n[1-4]"\n'
    '[[failures]]\nmodel = "exponential,mtbf=9d"\nrepair = "1h"\n[topology]\nkind = "torus"\nshape = [2, 2]\n',
    "table.csv": "name,class,mttf,age\nn1,old,9d,2y\nn2,new,10d,1d\nn3,old,,\n",
    "run.toml": 'workload = "made.swf"\nplatform = "tiny"\nscheduler = "easy"\nuntil = "2h"\nseed = 3\n'
    '[[transform]]\nstep = "scale"\nload = 0.9\n',
    "maui.cfg": "QUEUETIMEWEIGHT 2\nFSPOLICY DEDICATEDPS\nFSDEPTH 4\nFSINTERVAL 24:00:00\n"
    "USERCFG[2] FSTARGET=20 PRIORITY=5\n"
    "BACKFILLPOLICY FIRSTFIT\nRESERVATIONDEPTH 3\nSRCFG[m] PERIOD=DAY STARTTIME=8:00:00 ENDTIME=9:00:00\n",
    "preset.toml": 'description = "x"\norder = "sjf"\nbackfill = "easy"\nplacement = "lowest"\n',
}
_HOSTILE = (
    b"-1", b"0", b"1e308", b"1e-320", b"nan", b"inf", b"99999999999999999999", b"\x00", b"\xff\xfe", b"'", b'"', b"[",
    b"{", b"\n", b",", b"=", b"../../../etc/passwd", b"/dev/zero", b"\x1b[2J", b"\xe2\x80\xae", b"null", b"true",
    b"a" * 70_000,
)  # fmt: skip


def damaged(content: bytes, other: bytes, rng: random.Random) -> bytes:
    """Return the content with one to four changes."""
    for _ in range(rng.randint(1, 4)):
        lines = content.splitlines(keepends=True) or [b""]
        at, end = sorted((rng.randint(0, len(content)), rng.randint(0, len(content))))
        line = rng.randrange(len(lines))
        match rng.randrange(9):
            case 0:
                content = content[:at]
            case 1:
                content = content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :]
            case 2:
                content = content[:at] + rng.choice(_HOSTILE) + content[at + rng.randint(0, 3) :]
            case 3:
                content = b"".join([*lines[: line + 1], lines[line] * rng.choice((1, 3, 1000)), *lines[line + 1 :]])
            case 4:
                content = b"".join([*lines[:line], *lines[line + 1 :]])
            case 5:
                content = content[:at] + content[end:]
            case 6:
                content = content[:at] + other[: rng.randint(0, len(other))] + content[at:]
            case 7:
                content = content[:at] + content[at : at + 9] * rng.choice((2, 5000)) + content[at:]
            case _:
                cells = lines[line].replace(b",", b" ").replace(b":", b" ").replace(b'"', b" ").split()
                word = rng.choice(cells or [b" "])
                content = content.replace(word, rng.choice(_HOSTILE), rng.choice((1, 1, 50)))
    return content[: 10 << 20]


def _limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_S, LIMIT_S + 1))


def _used() -> float:
    """Return the processor time of all commands so far (s)."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _packed(name: str, content: bytes) -> bytes:
    suffix = Path(name).suffix
    return gzip.compress(content) if suffix == ".gz" else lzma.compress(content) if suffix == ".xz" else content


def _unpacked(name: str, content: bytes) -> bytes:
    suffix = Path(name).suffix
    return gzip.decompress(content) if suffix == ".gz" else lzma.decompress(content) if suffix == ".xz" else content


def _made(home: Path) -> None:
    prepare(home)
    for name, text in _FILES.items():
        (home / name).write_text(text, encoding="ascii")
    (home / "keys").mkdir()
    content = (home / "made.swf").read_bytes()
    (home / "made.swf.gz").write_bytes(gzip.compress(content))
    (home / "made.swf.xz").write_bytes(lzma.compress(content))
    for words in (*MADE, *_MORE):
        code, said = command(home, list(words))
        if code != 0:
            sys.exit(f"{' '.join(words)} ends with exit code {code}: {said[-300:]}")


def _place(home: Path, name: str) -> Path:
    if name == "SNAPSHOT":
        return max(home.glob("kept/out_snapshot*"), key=lambda path: (len(path.name), path.name))
    if name == "cases/CASE":
        return min(home.glob("cases/**/case.toml"))
    return home / name


def fault(code: int | None, said: str) -> str:
    """Return what is wrong with a command's answer, or an empty text."""
    if code is None:
        return f"does not end within {_PATIENCE_S:g} s"
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        return f"does not end within {LIMIT_S} s of processor time"
    if "Traceback" in said or code not in CODES:
        return f"ends with exit code {code}: {said[-300:]!r}"
    lines = [line for line in said.splitlines() if line.startswith("pipistrelle: ")]
    if code == 2 and not said.strip():
        return f"says nothing: {said[-300:]!r}"
    return "" if max(map(len, lines), default=0) <= 2000 else f"says too much: {len(max(lines, key=len))} characters"


def main() -> int:
    """Carry out the benchmark; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=2000, help="number of damaged files")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=READERS, help="damage the files of one reader only")
    options = parser.parse_args()
    readers = [options.only] if options.only else [*READERS]
    codes: Counter[int | None] = Counter()
    wrong, longest = 0, 0.0
    with tempfile.TemporaryDirectory(prefix="pipistrelle-") as folder:
        whole = Path(folder) / "whole"
        whole.mkdir()
        _made(whole)
        others = [_place(whole, name).read_bytes() for name, _ in READERS.values()]
        for number in range(options.files):
            reader = readers[number % len(readers)]
            rng = random.Random(f"{options.seed} {reader} {number}")
            name, words = READERS[reader]
            home = Path(folder) / "home"
            shutil.copytree(whole, home)
            target = _place(home, name)
            content = target.read_bytes()
            if rng.random() < 0.7:  # most damage is inside a compressed file, where its own reader sees it
                inside = damaged(_unpacked(target.name, content), rng.choice(others), rng)
                target.write_bytes(_packed(target.name, inside))
            else:
                target.write_bytes(damaged(content, rng.choice(others), rng))
            began = _used()
            code, said = command(home, list(words), _limited, _PATIENCE_S)
            longest = max(longest, _used() - began)
            codes[code] += 1
            if found := fault(code, said):
                wrong += 1
                print(f"{reader}, file {number}: {found}", flush=True)
                kept = Path(tempfile.gettempdir()) / f"pipistrelle-hostile-{options.seed}-{number}{target.suffix}"
                shutil.copyfile(target, kept)
            shutil.rmtree(home)
    told = ", ".join(f"{code}: {count}" for code, count in sorted(codes.items(), key=str))
    print(f"exit codes {told}; the longest took {longest:.1f} s of processor time", file=sys.stderr)
    print(f"{options.files} files, {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())

"""Kinds of input files, a command that reads each kind, and checks of its output."""

import gzip
import hashlib
import json
import lzma
import resource
import shutil
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hostile.child import command, import_all
from hostile.valid_files import FILES
from hostile.writers import MADE, prepare

#: limits of one command: processor time (s) and address space (bytes)
LIMIT_S, LIMIT_BYTES = 10, 1 << 30
#: processor time (s) of imports; it is part of the limit, but spent before the command is forked
_IMPORTS_S = 1
#: longest wall-clock time of a command (s), on a busy machine
PATIENCE_S = 100.0
#: exit codes that the documentation allows
CODES = frozenset({0, 1, 2, 3, 4, 5})
#: greatest length of a message (characters)
_LONGEST = 2000
_EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
#: placeholders for files whose names depend on the command that wrote them
_SNAPSHOT, _CASE = "SNAPSHOT", "cases/CASE"
_GOLDEN = "cases/short-job-first/golden/out_"


@dataclass(frozen=True)
class Reader:
    """A kind of input file and a command that reads it.

    Attributes:
        file: path of the file, relative to the command's working directory.
        words: the command-line arguments.
        code: the exit code if the file is undamaged.
    """

    file: str
    words: tuple[str, ...]
    code: int = 0

    def place(self, home: Path) -> Path:
        """Return the path of the file under ``home``.

        The names of snapshots and cases vary; for these the file is searched for.
        """
        if self.file == _SNAPSHOT:
            return max(home.glob("kept/out_snapshot*"), key=lambda path: (len(path.name), path.name))
        return min(home.glob("cases/**/case.toml")) if self.file == _CASE else home / self.file

    @property
    def is_binary(self) -> bool:
        """Whether the file is binary.

        Only Parquet files are binary; compressed text counts as text.
        """
        return self.file.endswith(".parquet")


_REPLAY = ("check", "replay")
_FILL = ("workload", "fill", "--platform", "nodes.csv", "--workload", "pods.csv", "--placement", "fgd", "--seed", "1")
_RUN = ("run", "--quiet", "--in-process", "--overwrite", "--out", "out")
_TINY = ("-w", "made.swf", "-p", "tiny")
_SLURM = (
    *(*_RUN, "-w", "jobs.events", "-p", "slurm.conf", "--scheduler", "slurm", "--config", "slurm.conf"),
    *("--until", "5min"),  # a valid file with a line a thousand times is to be read, but not simulated to its end
)
_UNSERVED = ("schedule", "easy", "--hello-timeout", "0.1", "--connect")
_KEYS = (*_UNSERVED, "tcp://127.0.0.1:9", "--curve", "keys/server.key")
_SERVER = ("serve", *("-w", "made.swf", "-p", "tiny"), "--out", "served", "--overwrite", "--hello-timeout", "0.1")
_BATSIM = ("pipistrelle-batsim", "-p", "cluster.xml", "-w", "jobs.json", "-q", "-e", "b")
_CHECKED = ("slurm", "check", "recording")


def _validated(*files: str) -> Reader:
    return Reader(files[0], ("validate", *files))


def _of_run(name: str, *words: str, code: int = 0) -> Reader:
    return Reader(f"one/out_{name}", words, code)


def _live(option: str, file: str, *, queue: bool = True, at: str | None = None) -> Reader:
    """Return a `Reader`: a forecast of the example cluster that reads ``file``.

    The file is given with the option ``option``. Without ``queue``, the example's output of squeue is left out.
    """
    words = (
        {"--squeue": "live/squeue.txt", "--scontrol": "live/nodes.txt"} if queue else {"--scontrol": "live/nodes.txt"}
    )
    words |= {"--config": "live/slurm.conf", "--accounting": "live/accounts.txt"}
    others = [word for name, other in words.items() if other != file for word in (name, other)]
    others += [] if at is None else ["--at", at]
    return Reader(file, ("forecast", *others, option, file, *("--replicas", "2", "--jobs", "1"), "--csv", "starts.csv"))


def _recorded(name: str) -> Reader:
    return Reader(f"recording/{name}", _CHECKED)


def _option(option: str, file: str, *words: str) -> Reader:
    return Reader(file, (*_RUN, *_TINY, *words, option, file))


READERS: dict[str, Reader] = {
    "SWF": _validated("made.swf"),
    "SWF gzip": _validated("made.swf.gz"),
    "SWF xz": Reader("made.swf.xz", (*_RUN, "-w", "made.swf.xz", "-p", "tiny")),
    "Batsim workload": _validated("jobs.json"),
    "Batsim run": Reader("made.json", (*_RUN, "-w", "made.json", "-p", "tiny")),
    "sacct": _validated("made.sacct"),
    "sacct requests": Reader("shared.sacct", (*_RUN, "-w", "shared.sacct", "-p", "shared.toml")),
    "Maui trace": _validated("made.maui"),
    "PBS": _validated("made.pbs"),
    "Haizea": _validated("leases.xml"),
    "pods": _validated("pods.csv"),
    "Helios": _validated("helios.csv"),
    "Philly": _validated("philly.json"),
    "workload described": Reader("made.swf", ("workload", "describe", "made.swf")),
    "model": Reader("model.toml", ("workload", "redraw", "made.swf", "--model", "model.toml", "-o", "x.swf")),
    "classes": Reader("classes.toml", ("workload", "generate", "--classes", "classes.toml", "-o", "x.swf")),
    "SimGrid": _validated("cluster.xml"),
    "SimGrid run": Reader(
        "cluster.xml", ("pipistrelle-batsim", "-p", "cluster.xml", "-w", "jobs.json", "--no-sched", "-q", "-e", "b")
    ),
    "Batsim events": Reader("events.txt", (*_BATSIM, "--events", "events.txt", "--hello-timeout", "0.1"), 4),
    "text for the scheduler": Reader(
        "told.txt", (*_BATSIM, "--sched-cfg-file", "told.txt", "--hello-timeout", "0.1"), 4
    ),
    "platform": _validated("machine.toml"),
    "platform shared": _validated("shared.toml"),
    "table of nodes": Reader("table.csv", ("validate", "machine.toml")),
    "nodes of a fill": Reader("nodes.csv", _FILL),
    "pods of a fill": Reader("pods.csv", _FILL),
    "slurm.conf": Reader("slurm.conf", _SLURM),
    "slurm.conf validated": _validated("slurm.conf"),
    "gres.conf": Reader("gres.conf", ("validate", "slurm.conf", "gres.conf")),
    "topology.conf": Reader("topology.conf", _SLURM),
    "Slurm events": _validated("jobs.events"),
    "Slurm events run": Reader("jobs.events", _SLURM),
    "accounts": _validated("accounts.txt"),
    "accounts of a run": Reader("accounts.txt", (*_SLURM, "--accounting", "accounts.txt")),
    "QOS": Reader("qos.txt", (*_SLURM, "--accounting", "accounts.txt", "--accounting", "qos.txt")),
    "reservations": Reader("reserved.txt", (*_SLURM, "--reservations", "reserved.txt")),
    "outages": _option("--outages", "four.csv"),
    "outages described": Reader("down.csv", ("failures", "show", "down.csv")),
    "outages of sacctmgr": Reader("down.sacctmgr", ("failures", "show", "down.sacctmgr")),
    "outages of scontrol": Reader("down.scontrol", ("failures", "show", "down.scontrol")),
    "outages of PBS": Reader("down.pbs", ("failures", "show", "down.pbs")),
    "outages of Batsim": Reader("down.json", ("failures", "show", "down.json")),
    "outages of LANL": Reader("lanl.csv", ("failures", "show", "lanl.csv")),
    "lives": Reader("lives.csv", ("failures", "show", "lives.csv")),
    "run": Reader("one/out_command.json", ("run", "one/out_command.json", "--quiet", "--overwrite", "--out", "out")),
    "run in TOML": _validated("run.toml"),
    "study": _validated("study.toml"),
    "journal": Reader("study/journal.jsonl", ("study", "run", "study.toml", "-o", "study", "--jobs", "1")),
    "identity of a study": Reader("study/study.json", ("study", "run", "study.toml", "-o", "study", "--jobs", "1")),
    "study described": Reader("study/study.json", ("study", "summary", "study")),
    "table of trials": Reader(
        "study/trials.parquet", ("study", "compare", "study", "--axis", "scheduler", "--metric", "mean_wait")
    ),
    "maui.cfg": _option("--config", "maui.cfg", "--scheduler", "maui"),
    "jobs of a run": _of_run("jobs.csv", "compare", "one", "two", code=1),
    "jobs in Parquet": Reader("packed/out_jobs.parquet", ("compare", "packed", "two"), 1),
    "labels of a run": _of_run("labels.csv", "report", "one", "--out", "page.html"),
    "schedule of a run": _of_run("schedule.csv", "report", "one", "--out", "page.html"),
    "jobs for accuracy": _of_run("jobs.csv", "explain", "accuracy", "one", "made.swf", "--warm-up", "0s"),
    "jobs for placement": _of_run("jobs.csv", "explain", "placement", "one"),
    "decisions of a run": _of_run("decisions.csv", "explain", "job", "one", "w0!5"),
    "index of a run": _of_run("explain.index", "explain", "job", "one", "w0!5"),
    "command of a run": _of_run("command.json", "explain", "queue", "one", "--at", "1h"),
    "states of a run": _of_run("machine_states.csv", "report", "one", "--out", "page.html"),
    "summary of a run": _of_run("summary.json", "compare", "one", "two", code=1),
    "configuration of a run": _of_run("config.json", "report", "one", "--out", "page.html"),
    "session": Reader("played.jsonl", (*_REPLAY, "played.jsonl", "--server")),
    "session to a policy": Reader(
        "played.jsonl.gz", (*_REPLAY, "played.jsonl.gz", "--scheduler", "easy", "--in-process")
    ),
    "snapshot": Reader(_SNAPSHOT, ("resume", "kept", "--quiet", "--out", "out", "--overwrite")),
    "scheduler preset": _option("--scheduler", "preset.toml"),
    "case": Reader(_CASE, ("check", "cases", "cases")),
    "public key": Reader("keys/server.pub", (*_KEYS, "--server-key", "keys/server.pub"), 4),
    "private key": Reader("keys/server.key", (*_KEYS, "--server-key", "keys/server.pub"), 4),
    "keys of clients": Reader(
        "keys/scheduler.pub",
        (*_SERVER, "--curve", "keys/server.key", "--clients", "keys", "--endpoint", "tcp://127.0.0.1:*"),
        4,
    ),
    "connection file": Reader("connection.json", (*_UNSERVED, "connection.json"), 4),
    "folder of a scheduler": Reader(
        "foreign/scheduler.toml", (*_RUN[:2], "--overwrite", "--out", "out", *_TINY, "--scheduler", "foreign"), 4
    ),
    "usage trace": Reader("usage.txt", (*_RUN, "-w", "usage.json", "-p", "cluster.xml")),
    "usage of a rank": Reader("ranks/0.txt", (*_RUN, "-w", "usage.json", "-p", "cluster.xml")),
    "Maui resources": _validated("nodes.maui"),
    "Maui resources of a run": Reader("nodes.maui", (*_RUN, "-w", "made.swf", "-p", "nodes.maui")),
    "failure model": Reader(
        "failing.toml", (*_RUN, *_TINY, "--failures", "failing.toml", "--repair", "1h", "--seed", "1")
    ),
    "failure model validated": _validated("failing.toml"),
    "maintenance": _option("--maintenance", "rules.txt"),
    "list of nodes": _option("--node-table", "mine.csv"),
    "list of nodes in TOML": _option("--node-table", "mine.toml"),
    "list of nodes validated": _validated("mine.csv"),
    "classes by reliability": Reader(
        "sizes.toml",
        (*_RUN, *_TINY, "--failures", "exponential,mtbf=60d", "--repair", "1h", "--reliability", "sizes.toml"),
    ),
    "classes in partitions": Reader(
        "classes.toml", ("failures", "partitions", "classes.toml", "-p", "unequal.toml", "--duration", "1d")
    ),
    "log planned": Reader("made.swf", ("failures", "plan", "made.swf", "--mttf", "10000h")),
    "outages fitted": Reader("down.csv", ("failures", "fit", "down.csv", "-o", "x.toml")),
    "Titan's lives": Reader(
        "lives.csv", ("explain", "titan", "--lives", "lives.csv", "--begin", "2015-01-01", "--end", "2019-06-01")
    ),
    "pods resources": Reader("pods.csv", (*_RUN, "-w", "pods.csv", "-p", "nodes.csv")),
    "nodes of a run": Reader("nodes.csv", (*_RUN, "-w", "pods.csv", "-p", "nodes.csv")),
    "Helios run": Reader("helios.csv", (*_RUN, "-w", "helios.csv", "-p", "shared.toml")),
    "Philly run": Reader("philly.json", (*_RUN, "-w", "philly.json", "-p", "shared.toml")),
    "sacct transformed": Reader(
        "shared.sacct", ("workload", "filter", "shared.sacct", "--first", "3", "-o", "x.sacct")
    ),
    "log merged": Reader("made.maui", ("workload", "merge", "made.swf", "made.maui", "-o", "x.swf")),
    "Batsim workload scaled": Reader("made.json", ("workload", "scale", "made.json", "--load", "0.5", "-o", "x.json")),
    "log likened": Reader("made.swf", ("workload", "generate", "--like", "made.swf", "-o", "x.swf")),
    "logs compared": Reader("made.sacct", ("workload", "compare", "made.swf", "made.sacct")),
    "log in time steps": Reader(
        "made.swf",
        (
            "study",
            "steps",
            "-w",
            "made.swf",
            "-p",
            "tiny",
            "--week",
            "1",
            "--step",
            "60s",
            "--warm-up",
            "0s",
            "--quiet",
        ),
    ),
    "figures of a paper": Reader(
        "papers/kept/small/parts.jsonl",
        ("study", "papers", "002", "--only", "equations", "-q", "-j", "1", "-o", "papers"),
    ),
    "rows of a case": Reader("large/demo/golden/rows.json.xz", ("check", "cases", "large")),
    "summary of a case": Reader(f"{_GOLDEN}summary.json", ("check", "cases", "cases")),
    "configuration of a case": Reader(f"{_GOLDEN}config.json", ("check", "cases", "cases")),
    "jobs of a case": Reader(f"{_GOLDEN}jobs.csv", ("check", "cases", "cases")),
    "attempts of a run": Reader("failed/out_attempts.csv", ("explain", "placement", "failed")),
    "outages of a run": Reader("failed/out_outages.csv", ("explain", "placement", "failed")),
    "failures on a page": Reader("failed/out_nodes.csv", ("report", "failed", "--out", "page.html")),
    "resources of a run": Reader("packed_nodes/out_jobs.csv", ("report", "packed_nodes", "--out", "page.html")),
    "jobs on shared nodes": Reader("packed_nodes/out_jobs.csv", ("compare", "packed_nodes", "packed_nodes")),
    "Slurm's tables": Reader("slurmed/out_command.json", ("explain", "slurm", "slurmed", "--at", "4s")),
    "jobs in Slurm's tables": Reader("slurmed/out_jobs.csv", ("explain", "slurm", "slurmed", "--at", "4s")),
    "decisions of another order": Reader(
        "failed/out_jobs.csv", ("explain", "order", "failed", "--node-order", "snake")
    ),
    "queue of squeue": _live("--squeue", "live/squeue.txt"),
    "queue in columns": _live("--squeue", "live/columns.txt", queue=False, at="2026-01-05T08:00:00"),
    "queue in JSON": _live("--squeue", "live/squeue.json", queue=False),
    "queue of sacct": _live("--squeue", "live/queue.sacct", queue=False),
    "jobs of scontrol": _live("--scontrol", "live/jobs.txt"),
    "nodes of scontrol": _live("--scontrol", "live/nodes.txt"),
    "nodes in JSON": _live("--scontrol", "live/nodes.json"),
    "reservations of scontrol": _live("--scontrol", "live/reservations.txt"),
    "reservations in JSON": _live("--scontrol", "live/reservations.json"),
    "nodes of sinfo": _live("--sinfo", "live/sinfo.txt"),
    "sinfo in JSON": _live("--sinfo", "live/sinfo.json"),
    "shares of sshare": _live("--sshare", "live/sshare.txt"),
    "shares in JSON": _live("--sshare", "live/sshare.json"),
    "history": _live("--history", "live/history.txt"),
    "live slurm.conf": _live("--config", "live/slurm.conf"),
    "live gres.conf": Reader("live/gres.conf", _live("--sshare", "live/sshare.txt").words),
    "live accounts": _live("--accounting", "live/accounts.txt"),
    "recorded jobs": _recorded("jobs.csv"),
    "recorded starts": _recorded("starts.csv"),
    "recorded passes": _recorded("passes.csv"),
    "recorded results": _recorded("result.csv"),
    "recorded events": _recorded("events.csv"),
    "recorded submissions": _recorded("jobs.events"),
    "recorded slurm.conf": _recorded("slurm.conf"),
    "recorded log": _recorded("decisions.log.xz"),
    "commands to record": Reader(
        "commands.csv",
        ("slurm", "record", "--config", "live", "-w", "jobs.events", "--reservations", "commands.csv", "-o", "live"),
        2,
    ),
}
_MORE = (
    ("workload", "convert", "made.swf", "made.json"),
    ("workload", "convert", "made.swf", "made.sacct"),
    ("workload", "convert", "made.swf", "made.maui"),
    ("workload", "model", "made.swf", "-o", "model.toml"),
    (*_RUN, *_TINY, "--record", "played.jsonl"),
    (*_RUN, *_TINY, "--record", "played.jsonl.gz"),
    ("run", *_TINY, "--quiet", "--in-process", "--format", "parquet", "--out", "packed"),
    ("explain", "job", "one", "w0!5"),
    ("new", "keys", "keys", "--name", "server"),
    ("check", "cases", "cases", "--update"),
    ("check", "cases", "large", "--update"),
    ("failures", "fit", "down.csv", "-o", "failing.toml"),
    (*_RUN[:-1], "failed", "-w", "made.swf", "-p", "machine.toml", "--seed", "1"),
    (*_RUN[:-1], "packed_nodes", "-w", "shared.sacct", "-p", "shared.toml"),
    (*_SLURM, "--out", "slurmed"),
    ("study", "papers", "002", "--only", "equations", "-q", "-j", "1", "-o", "papers"),
)


def packed(name: str, content: bytes) -> bytes:
    """Compress content if the file name ends with .gz or .xz.

    Other content is returned unchanged.
    """
    suffix = Path(name).suffix
    return gzip.compress(content) if suffix == ".gz" else lzma.compress(content) if suffix == ".xz" else content


def unpacked(name: str, content: bytes) -> bytes:
    """Decompress content if the file name ends with .gz or .xz.

    Other content is returned unchanged.
    """
    suffix = Path(name).suffix
    return gzip.decompress(content) if suffix == ".gz" else lzma.decompress(content) if suffix == ".xz" else content


def sealed(content: bytes) -> bytes:
    """Return a damaged snapshot with its digest corrected.

    Otherwise the digest would reveal the damage. The reader then parses the damaged state. If the header itself is
    damaged, the content is returned unchanged.
    """
    head, _, body = content.partition(b"\n")
    try:
        header = json.loads(head)
        header["sha256"] = hashlib.sha256(body).hexdigest()
        return json.dumps(header).encode() + b"\n" + body
    except (ValueError, TypeError, KeyError, RecursionError):
        return content


def make(home: Path) -> str:
    """Create one valid file of each kind in a folder.

    Return an error text, or an empty one.
    """
    import_all()
    prepare(home)
    shutil.copytree(_EXAMPLES / "live", home / "live")
    for name, text in FILES.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text, encoding="ascii")
    for name, example in (("shared.toml", "shared/cluster.toml"), ("shared.sacct", "shared/jobs.sacct")):
        shutil.copyfile(_EXAMPLES / example, home / name)
    for name in ("classes.toml", "unequal.toml"):
        shutil.copyfile(_EXAMPLES / name, home / name)
    content = (home / "made.swf").read_bytes()
    (home / "made.swf.gz").write_bytes(gzip.compress(content))
    (home / "made.swf.xz").write_bytes(lzma.compress(content))
    for words in (*MADE, *_MORE):
        code, said = command(home, list(words))
        if code != 0:
            return f"{' '.join(words)} ends with exit code {code}: {said[-300:]}"
    last = READERS["snapshot"].place(home)
    for path in home.glob("kept/out_snapshot*"):  # if the newest is damaged, `resume` would use an older one
        if path != last:
            path.unlink()
    return ""


def limited() -> None:
    """Limit the processor time and the memory (address space) of the current process."""
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_S - _IMPORTS_S, LIMIT_S))


def fault(code: int | None, said: str, codes: frozenset[int] = CODES) -> str:
    """Return what is wrong with a command's exit code and output, or an empty text.

    Args:
        code: the exit code; None if the command did not end.
        said: the output.
        codes: the exit codes that are allowed.
    """
    if code is None:
        return f"does not end within {PATIENCE_S:g} s"
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        return f"does not end within {LIMIT_S} s of processor time"
    if "Traceback" in said or code not in codes:
        return f"ends with exit code {code}: {said[-300:]!r}"
    lines = [line for line in said.splitlines() if line.startswith("pipistrelle: ")]
    if code == 2 and not said.strip():
        return f"says nothing: {said[-300:]!r}"
    return (
        "" if max(map(len, lines), default=0) <= _LONGEST else f"says too much: {len(max(lines, key=len))} characters"
    )


def answer(
    whole: Path, home: Path, reader: Reader, damage: Callable[[Path], object] = lambda path: None
) -> tuple[int | None, str]:
    """Run a reader's command in a temporary copy of the folder of input files.

    Args:
        whole: folder with all undamaged files.
        home: path of the copy, which is removed afterwards.
        reader: the command, and the file to damage.
        damage: called with the path of this file in the copy, to damage or replace it.

    Returns:
        The exit code, or None if the command did not end; and the output.
    """
    shutil.copytree(whole, home)
    damage(reader.place(home))
    try:
        return command(home, list(reader.words), limited, PATIENCE_S)
    finally:
        shutil.rmtree(home)


def used() -> tuple[float, int]:
    """Return processor time (s) and peak memory (KiB) of finished child processes.

    The memory is the largest resident memory of any of them.
    """
    found = resource.getrusage(resource.RUSAGE_CHILDREN)
    return found.ru_utime + found.ru_stime, found.ru_maxrss


def check_whole(whole: Path, home: Path, readers: dict[str, Reader]) -> list[str]:
    """Return one message per reader whose exit code for undamaged files is wrong.

    Damaging such a file would prove nothing.
    """
    wrong = []
    for name, reader in readers.items():
        code, said = answer(whole, home, reader)
        if code != reader.code:
            wrong.append(f"{name}, undamaged: exit code {code}: {said[-300:]}")
    return wrong

"""Every command that writes files, and the files that it writes."""

import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
from hostile.child import PYTHON

_EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
_LIVE = _EXAMPLES / "live"
#: options of a forecast for the example cluster
_FORECAST = (
    *("--squeue", str(_LIVE / "squeue.txt"), "--scontrol", str(_LIVE / "nodes.txt"), "--replicas", "2"),
    *("--config", str(_LIVE / "slurm.conf"), "--accounting", str(_LIVE / "accounts.txt")),
)
_MINIMAL = str(_EXAMPLES / "minimal_scheduler.py")
#: a small study of the log made.swf
_STUDY = """[run]
workload = "made.swf"
platform = "tiny"
[axes]
scheduler = ["fcfs", "easy"]
until = ["1h", "2h"]
[replicas]
count = 1
"""
#: commands whose output other commands read
MADE: tuple[tuple[str, ...], ...] = (
    ("run", "-w", "made.swf", "-p", "tiny", "--in-process", "--quiet", "--out", "one"),
    ("run", "-w", "made.swf", "-p", "tiny", "--in-process", "--quiet", "--out", "two", "--scheduler", "fcfs"),
    (
        *("run", "-w", "made.swf", "-p", "tiny", "--in-process", "--quiet", "--out", "kept"),
        *("--snapshot-every", "sim:1h", "--leave-snapshots"),
    ),
    ("run", "-w", "made.swf", "-p", "tiny", "--in-process", "--quiet", "--out", "r", "--record", "session.jsonl"),
    (
        *("run", "-w", "small.events", "-p", "recording/slurm.conf", "--config", "recording/slurm.conf"),
        *("--scheduler", "slurm", "--in-process", "--quiet", "--out", "slurm"),
    ),
    ("study", "run", "study.toml", "-o", "study", "--jobs", "1"),
    (
        "failures",
        "generate",
        "--nodes",
        "400",
        "--failures",
        "exponential,mtbf=90d",
        "--repair",
        "1h",
        "--horizon",
        "30d",
        "-o",
        "down.csv",
    ),
)


def prepare(home: Path) -> None:
    """Write the input files that no command of `MADE` creates."""
    (home / "study.toml").write_text(_STUDY, encoding="ascii")
    lines = ["; MaxProcs: 4\n"]
    for one in range(1, 60):
        size = 1 + one % 3
        lines.append(
            f"{one} {40 * one} {one % 9} {300 + 7 * one} {size} -1 -1 {size} 900 -1 1 {one % 4}" + " -1" * 6 + "\n"
        )
    (home / "made.swf").write_text("".join(lines), encoding="ascii")
    nodes = ["sn,cpu_milli,memory_mib,gpu,model\n", *(f"n{one},64000,262144,2,P100\n" for one in range(4))]
    (home / "nodes.csv").write_text("".join(nodes), encoding="ascii")
    pods = ["name,cpu_milli,memory_mib,num_gpu,gpu_milli\n", *(f"p{one},4000,4096,1,500\n" for one in range(9))]
    (home / "pods.csv").write_text("".join(pods), encoding="ascii")
    for name in ("cluster.xml", "jobs.json"):
        shutil.copyfile(_EXAMPLES / "batsim" / name, home / name)
    shutil.copytree(_EXAMPLES / "cases", home / "cases")
    shutil.copytree(_EXAMPLES / "recording", home / "recording")
    shutil.copyfile(_EXAMPLES / "recording" / "jobs.events", home / "small.events")


def is_json(content: bytes) -> bool:
    """Return whether the content is one complete JSON object and a line feed."""
    try:
        return content.endswith(b"\n") and isinstance(msgspec.json.decode(content), dict)
    except msgspec.DecodeError:
        return False


def is_junit(content: bytes) -> bool:
    """Return whether the content is a complete JUnit file, whose test durations vary."""
    return content.startswith(b"<?xml") and content.endswith(b"</testsuites>\n")


def is_recorded(content: bytes) -> bool:
    """Return whether the content is a complete file of a recording.

    Such files vary between recordings, so their bytes cannot be compared.
    """
    return (content.startswith(b"\xfd7zXZ") and content.endswith(b"YZ")) or content.endswith((b"\n", b"}"))


def is_key(content: bytes) -> bool:
    """Return whether the content is a complete key file."""
    return content.startswith(b"#") and content.count(b'"') in (2, 4) and content.endswith(b"\n")


@dataclass(frozen=True)
class Writer:
    """A command that writes files.

    Attributes:
        option: the command, and the parameter that names the output file or folder.
        words: the command-line arguments.
        files: files that must be unchanged or complete if the command is killed.
        tables: files that grow during the command; they must end with a complete line at any time.
        valid: returns whether a file is complete; needed if its bytes vary between runs.
        code: the expected exit code.
        fresh: whether the command refuses to overwrite files.
        optional: whether the command also succeeds without writing its files, such as an index that saves time.
        also: folders with outputs that other commands of this list write, too.
        needs: names of programs; without them, or without root's rights, the command cannot run.
    """

    option: str
    words: tuple[str, ...]
    files: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    valid: Callable[[bytes], bool] | None = None
    code: int = 0
    fresh: bool = False
    optional: bool = False
    also: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """The name of the command, such as ``study run``."""
        return self.option.rpartition(" ")[0]

    @property
    def is_possible(self) -> bool:
        """Whether this machine has what the command needs."""
        path = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
        found = all(shutil.which(name, path=path) for name in self.needs)
        return found and (not self.needs or os.geteuid() == 0)


def _one(option: str, *words: str, file: str) -> Writer:
    """Return a `Writer` for a command that writes one file.

    ``option`` ends with the parameter that names the file.
    """
    return Writer(option, (*option.split()[:-1], *words), (file,))


def _script(name: str, text: str, *files: str, tables: tuple[str, ...] = ()) -> Writer:
    """Return a `Writer` for a call of the Python API.

    ``name`` is the function and the argument that names the file.
    """
    return Writer(f"{PYTHON} {name}", (PYTHON, f"import pipistrelle as pp\n{text}"), files, tables)


def _out(*names: str) -> tuple[str, ...]:
    return tuple(f"new/out_{name}" for name in names)


_RUN = ("-w", "made.swf", "-p", "tiny", "--quiet", "--in-process")
_WHOLE = _out("config.json", "labels.csv", "command.json", "schedule.csv", "summary.json")
_TABLES = _out("jobs.csv", "decisions.csv", "machine_states.csv")
#: files of a recording, apart from its log
_RECORDED = (
    "alloc.csv",
    "events.csv",
    "jobs.csv",
    "jobs.events",
    "passes.csv",
    "result.csv",
    "slurm.conf",
    "starts.csv",
)
_STEPS = ("--week", "1", "--step", "60s", "--warm-up", "0s", "--quiet")

WRITERS: tuple[Writer, ...] = (
    Writer("run out", ("run", *_RUN, "--out", "new"), _WHOLE, _TABLES),
    Writer(
        "run out",
        ("run", *_RUN, "--out", "new", "--failures", "exponential,mtbf=9d", "--repair", "1h"),
        _WHOLE,
        (*_TABLES, *_out("attempts.csv", "nodes.csv", "outages.csv")),
    ),
    Writer(
        "run out",
        ("run", *_RUN, "--out", "new", "--format", "parquet"),
        (
            *_WHOLE,
            *(f"{name.removesuffix('.csv')}.parquet" for name in (*_TABLES, *_out("labels.csv", "schedule.csv"))),
        ),
        _TABLES,
    ),
    Writer("run out", ("run", *_RUN, "--out", "new", "--queue-lengths"), _WHOLE, (*_TABLES, *_out("queue.csv"))),
    Writer("run out", ("run", *_RUN, "--out", "new", "--page", "0"), _WHOLE, _TABLES),
    Writer("run out", ("run", "-w", "made.swf", "-p", "tiny", "--quiet", "--out", "new"), _WHOLE, _TABLES),
    Writer(
        "run out",
        (
            *("run", "-w", "small.events", "-p", "recording/slurm.conf", "--config", "recording/slurm.conf"),
            *("--scheduler", "slurmctld", "--quiet", "--out", "new"),
        ),
        _WHOLE,
        (*_TABLES, *_out("attempts.csv", "nodes.csv", "outages.csv")),
        needs=("slurmctld", "sbatch", "cc"),
    ),
    Writer("run out", ("run", *_RUN, "--out", "new", "--snapshot-every", "sim:1h"), _WHOLE, _TABLES),
    Writer("run timings", ("run", *_RUN, "--out", "t", "--timings", "t.json"), ("t.json",), valid=is_json, also=("t",)),
    Writer("run record", ("run", *_RUN, "--out", "t", "--record", "s.jsonl"), ("s.jsonl",), also=("t",)),
    Writer("run record", ("run", *_RUN, "--out", "t", "--record", "s.jsonl.gz"), ("s.jsonl.gz",), also=("t",)),
    Writer(
        "serve out",
        ("serve", "-w", "made.swf", "-p", "tiny", "--out", "new", "--hello-timeout", "0.3"),
        ("new/connection.json",),
        valid=is_json,
        code=4,
    ),
    Writer("resume out", ("resume", "kept", "--quiet", "--out", "new"), _WHOLE, _TABLES),
    Writer(
        "resume out",
        ("resume", "kept", "--quiet", "--scheduler", "easy", "--order", "sjf", "--out", "new"),
        _WHOLE,
        _TABLES,
    ),
    Writer(
        "resume timings",
        ("resume", "kept", "--quiet", "--out", "t", "--timings", "t.json"),
        ("t.json",),
        valid=is_json,
        also=("t",),
    ),
    Writer(
        "pipistrelle-batsim export",
        ("pipistrelle-batsim", "-p", "cluster.xml", "-w", "jobs.json", "--no-sched", "-q", "-e", "b/out"),
        ("b/out_schedule.csv",),
        ("b/out_jobs.csv", "b/out_machine_states.csv"),
    ),
    Writer(
        "pipistrelle-batsim export",
        ("pipistrelle-batsim", "-p", "cluster.xml", "-w", "jobs.json", "--no-sched", "-q", "-e", "b/out", "--energy"),
        ("b/out_schedule.csv",),
        tuple(f"b/out_{name}.csv" for name in ("jobs", "machine_states", "consumed_energy", "pstate_changes")),
    ),
    Writer("compare jobs", ("compare", "one", "two", "--jobs", "x.csv"), ("x.csv",), code=1),
    _one("report page", "one", "two", "-o", "x.html", file="x.html"),
    Writer("explain job run", ("explain", "job", "one", "9"), ("one/out_explain.index",), optional=True),
    _one("explain queue as_csv", "one", "--at", "1h", "--csv", "x.csv", file="x.csv"),
    _one("explain placement jobs", "one", "--jobs", "x.csv", file="x.csv"),
    _one("explain placement picture", "one", "--picture", "x.svg", file="x.svg"),
    *(
        _one(f"explain accuracy {name}", "one", "made.swf", "--warm-up", "0s", option, "x.csv", file="x.csv")
        for name, option in (("as_csv", "--csv"), ("cdf", "--cdf"), ("curves", "--curves"), ("jobs", "--jobs"))
    ),
    Writer(
        "study run out",
        ("study", "run", "study.toml", "-o", "new", "--jobs", "1"),
        ("new/study.json", "new/trials.parquet"),
        ("new/journal.jsonl",),
    ),
    _one(
        "study plot output",
        "study",
        "--x",
        "until",
        "--by",
        "scheduler",
        "--metric",
        "mean_wait",
        "-o",
        "x.svg",
        file="x.svg",
    ),
    _one("study steps as_csv", "-w", "made.swf", "-p", "tiny", *_STEPS, "--csv", "x.csv", file="x.csv"),
    Writer(
        "study papers out",
        ("study", "papers", "002", "--only", "equations", "-q", "-j", "1", "-o", "new"),
        ("new/002-equations.json", "new/002-equations.csv", "new/002-equations.html"),
        ("new/kept/small/parts.jsonl",),
    ),
    _one(
        "workload fill picture",
        *("--platform", "nodes.csv", "--workload", "pods.csv", "--placement", "best-fit", "--picture", "fill.svg"),
        file="fill.svg",
    ),
    _one("forecast as_csv", *_FORECAST, "--csv", "starts.csv", file="starts.csv"),
    Writer(
        "slurm record out",
        ("slurm", "record", "--config", "recording", "-w", "small.events", "-o", "rec", "--until", "1h"),
        tuple(f"rec/{name}" for name in (*_RECORDED, "decisions.log.xz", "sdiag.txt", "manifest.json")),
        valid=is_recorded,
        fresh=True,
        needs=("slurmctld", "slurmd", "sbatch", "cc"),
    ),
    _one("slurm check as_csv", "recording", "--csv", "x.csv", file="x.csv"),
    _one("slurm check page", "recording", "--page", "x.html", file="x.html"),
    _one("forecast page", *_FORECAST, "--out", "starts.html", file="starts.html"),
    Writer(
        "workload generate page",
        ("workload", "generate", "--like", "made.swf", "-o", "l.swf", "--page", "x.html"),
        ("x.html", "l.swf"),
    ),
    _one("workload generate output", "--jobs", "900", "-o", "x.swf", file="x.swf"),
    _one("workload generate output", "--jobs", "900", "-o", "x.swf.gz", file="x.swf.gz"),
    _one("workload generate output", "--jobs", "900", "-o", "x.json.xz", file="x.json.xz"),
    _one("workload model output", "made.swf", "-o", "x.toml", file="x.toml"),
    _one("workload convert target", "made.swf", "x.json", file="x.json"),
    _one("workload convert target", "made.swf", "x.sacct", file="x.sacct"),
    _one("workload convert target", "made.swf", "x.maui", file="x.maui"),
    _one("workload describe picture", "made.swf", "--picture", "x.svg", file="x.svg"),
    _one("workload compare page", "made.swf", "made.swf", "--page", "x.svg", file="x.svg"),
    _one("workload filter output", "made.swf", "--first", "40", "-o", "x.swf", file="x.swf"),
    _one("workload scale output", "made.swf", "--load", "0.5", "-o", "x.swf", file="x.swf"),
    _one("workload merge output", "made.swf", "made.swf", "-o", "x.swf", file="x.swf"),
    _one("workload shuffle output", "made.swf", "-o", "x.swf", file="x.swf"),
    _one("workload copy output", "made.swf", "--times", "2", "-o", "x.swf", file="x.swf"),
    _one("workload redraw output", "made.swf", "-o", "x.swf", file="x.swf"),
    _one(
        "failures generate output",
        "--nodes",
        "400",
        "--failures",
        "exponential,mtbf=90d",
        "--repair",
        "1h",
        "--horizon",
        "60d",
        "-o",
        "x.csv",
        file="x.csv",
    ),
    _one("failures fit output", "down.csv", "-o", "x.toml", file="x.toml"),
    _one("failures plan picture", "made.swf", "--mttf", "10000h", "--picture", "x.svg", file="x.svg"),
    Writer("new scheduler output", ("new", "scheduler", "mine", "-o", "x.py"), ("x.py",), fresh=True),
    Writer(
        "new keys folder",
        ("new", "keys", "new"),
        ("new/server.key", "new/server.pub", "new/scheduler.key", "new/scheduler.pub"),
        valid=is_key,
        fresh=True,
    ),
    Writer(
        "check scheduler logs",
        ("check", "scheduler", "-k", "rejection", "--logs", "new", "--", sys.executable, _MINIMAL, "{endpoint}"),
        ("new/rejection.log",),
        code=1,
    ),
    Writer(
        "check scheduler junit",
        ("check", "scheduler", "fcfs", "-k", "one-job", "--junit", "x.xml"),
        ("x.xml",),
        valid=is_junit,
    ),
    Writer(
        "check cases folder",
        ("check", "cases", "cases", "--update"),
        tuple(
            f"cases/short-job-first/golden/out_{name}"
            for name in ("config.json", "decisions.csv", "jobs.csv", "summary.json")
        ),
    ),
    Writer("check cases junit", ("check", "cases", "-k", "kill-race", "--junit", "x.xml"), ("x.xml",), valid=is_junit),
    _script(
        "run out",
        "pp.run('made.swf', platform='tiny', out='new')",
        *_WHOLE,
        tables=(*_TABLES, *_out("queue.csv")),
    ),
    Writer(
        "python run record",
        (PYTHON, "import pipistrelle as pp; pp.run('made.swf', platform='tiny', out='t', record='s.jsonl')"),
        ("s.jsonl",),
        also=("t",),
    ),
    _script("save_workload path", "pp.save_workload(pp.load_workload('made.swf'), 'x.json.gz')", "x.json.gz"),
    _script("Run.report path", "pp.open('one').report('x.html')", "x.html"),
    _script(
        "study out",
        "pp.study('study.toml', out='new', jobs=1)",
        *("new/study.json", "new/trials.parquet"),
        tables=("new/journal.jsonl",),
    ),
    _script(
        "Picture.save path",
        "pp.open_study('study').picture(x='until', by='scheduler').save('x.svg')",
        "x.svg",
    ),
    _script(
        "run_spec options",
        "from pathlib import Path\n"
        "pp.run_spec(pp.RunSpec(workload=('made.swf',), platform='tiny'), pp.RunOptions(out=Path('new')))",
        *_WHOLE,
        tables=_TABLES,
    ),
)
#: {command that writes no file: (its words, its exit code)}
SILENT: dict[str, tuple[tuple[str, ...], int]] = {
    "schedule": (("schedule", "easy", "--connect", "ipc://nobody", "--hello-timeout", "0.1"), 4),
    "explain slurm": (("explain", "slurm", "slurm", "--at", "130"), 0),
    "explain order": (("explain", "order", "one", "--node-order", "snake"), 0),
    "explain titan": (("explain", "titan"), 0),
    "study summary": (("study", "summary", "study"), 0),
    "study compare": (("study", "compare", "study", "--axis", "scheduler", "--latex"), 0),
    "study break-even": (
        ("study", "break-even", "study", "--x", "until", "--metric", "mean_wait", "--target", "1"),
        0,
    ),
    "show": (("show", "workload"), 0),
    "validate": (("validate", "made.swf", "study.toml"), 0),
    "failures show": (("failures", "show", "down.csv"), 0),
    "failures partitions": (
        ("failures", "partitions", str(_EXAMPLES / "classes.toml"), "-p", str(_EXAMPLES / "unequal.toml")),
        0,
    ),
    "failures yield": (("failures", "yield", "--nodes", "100", "--mtbf", "5y", "--dump", "1min"), 0),
    "check replay": (("check", "replay", "session.jsonl"), 0),
    "help": (("help", "--man"), 0),
}

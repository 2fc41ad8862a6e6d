"""Kinds of input files, a command that reads each kind, and checks of its output."""

import gzip
import hashlib
import json
import lzma
import resource
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path

from hostile.child import command
from hostile.writers import MADE, prepare

#: limits of one command: processor time (s) and address space (bytes)
LIMIT_S, LIMIT_BYTES = 10, 1 << 30
#: longest wall-clock time of a command (s), on a busy machine
PATIENCE_S = 100.0
#: exit codes that the documentation allows
CODES = frozenset({0, 1, 2, 3, 4, 5})
#: greatest length of a message (characters)
_LONGEST = 2000
_EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
#: placeholders for files whose names depend on the command that wrote them
_SNAPSHOT, _CASE = "SNAPSHOT", "cases/CASE"


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
_SLURM = (*_RUN, "-w", "jobs.events", "-p", "slurm.conf", "--scheduler", "slurm", "--config", "slurm.conf")
_KEYS = (
    *("schedule", "easy", "--connect", "tcp://127.0.0.1:9", "--hello-timeout", "0.1"),
    "--curve",
    "keys/server.key",
)


def _validated(*files: str) -> Reader:
    return Reader(files[0], ("validate", *files))


def _of_run(name: str, *words: str, code: int = 0) -> Reader:
    return Reader(f"one/out_{name}", words, code)


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
    "Batsim events": Reader(
        "events.txt",
        (
            "pipistrelle-batsim",
            "-p",
            "cluster.xml",
            "-w",
            "jobs.json",
            "-q",
            "-e",
            "b",
            "--events",
            "events.txt",
            "--hello-timeout",
            "0.1",
        ),
        4,
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
)
_FILES = {
    "machine.toml": 'name = "x"\nnode_table = "table.csv"\n[[pools]]\nname = "p"\nnodes = 4\nnames = "n[1-4]"\n'
    '[[failures]]\nmodel = "exponential,mtbf=9d"\nrepair = "1h"\n[topology]\nkind = "torus"\nshape = [2, 2]\n',
    "table.csv": "name,class,mttf,age\nn1,old,9d,2y\nn2,new,10d,1d\nn3,old,,\n",
    "run.toml": 'workload = "made.swf"\nplatform = "tiny"\nscheduler = "easy"\nuntil = "2h"\n'
    '[[transform]]\nstep = "scale"\nload = 0.9\n',
    "maui.cfg": "QUEUETIMEWEIGHT 2\nFSPOLICY DEDICATEDPS\nFSDEPTH 4\nFSINTERVAL 24:00:00\n"
    "USERCFG[2] FSTARGET=20 PRIORITY=5\n"
    "BACKFILLPOLICY FIRSTFIT\nRESERVATIONDEPTH 3\nSRCFG[m] PERIOD=DAY STARTTIME=8:00:00 ENDTIME=9:00:00\n",
    "preset.toml": 'description = "x"\norder = "sjf"\nbackfill = "easy"\nplacement = "lowest"\n',
    "made.pbs": "03/01/2017 08:00:00;Q;101.s;queue=q\n03/01/2017 08:30:10;E;101.s;user=alice account=a jobname=my job "
    "queue=q ctime=1488355200 start=1488355210 exec_host=a/0*24+b/0-3,5 Resource_List.nodect=2 "
    "Resource_List.select=2:ncpus=24 Resource_List.walltime=01:00:00 end=1488357010 Exit_status=0 "
    "depend=afterok:99.s@s\n03/01/2017 09:30:10;E;102.s;user=bob queue=q ctime=1488355300 start=1488355310 "
    "Resource_List.nodes=1:ppn=4 Resource_List.walltime=02:00:00 end=1488358010\n",
    "leases.xml": '<?xml version="1.0"?>\n<lease-workload><site><nodes><node-set numnodes="4"/></nodes></site>\n'
    '<lease-requests>\n<lease-request arrival="00:00:00.00"><lease id="1"><nodes><node-set numnodes="1"/></nodes>'
    '<start><exact time="00:30:00"/></start><duration time="01:00:00"/></lease></lease-request>\n'
    "</lease-requests></lease-workload>\n",
    "helios.csv": "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
    "j1,u1,vcA,16,64,2,COMPLETED,2020-04-01 00:00:00,2020-04-01 00:01:00,2020-04-01 01:01:00,3600,60\n"
    "j2,u2,vcB,3,9,2,FAILED,2020-04-01 00:05:00,,,0,0\n",
    "philly.json": json.dumps(
        [
            {
                "status": "Pass",
                "vc": "v",
                "jobid": f"application_{number}",
                "user": "u",
                "submitted_time": f"2017-10-09 07:02:1{number}",
                "attempts": [
                    {
                        "start_time": "2017-10-09 07:02:50",
                        "end_time": "2017-10-09 07:03:00",
                        "detail": [{"ip": "m1", "gpus": ["0", "1"]}, {"ip": "m2", "gpus": ["3"]}],
                    }
                ],
            }
            for number in range(3)
        ]
    ),
    "slurm.conf": "ClusterName=zeus\nSchedulerParameters=bf_window=2880,bf_interval=60\nSelectType=select/linear\n"
    "PriorityType=priority/multifactor\nPriorityWeightAge=1000\nPriorityWeightFairshare=10000\nPriorityMaxAge=1-0\n"
    "TopologyPlugin=topology/tree\nAccountingStorageEnforce=associations,limits,qos\nLicenses=a:2,b\n"
    "NodeName=DEFAULT RealMemory=64000\nNodeName=n[01-04,07] CPUs=16 Feature=a,b Weight=3\n"
    "PartitionName=batch Nodes=ALL Default=YES MaxTime=1-00:00:00\nPartitionName=debug Nodes=n[03-04] MaxTime=30\n",
    "gres.conf": "NodeName=n[01-02] Name=gpu Type=a100 File=/dev/nvidia[0-1]\nName=bw Count=2K\n",
    "topology.conf": "SwitchName=s1 Nodes=n[01-04]\nSwitchName=s2 Nodes=n07\nSwitchName=top Switches=s[1-2]\n",
    "jobs.events": "# start: 2026-01-05T00:00:00\n"
    "-dt 0 -e submit_batch_job | -J jobid_1 -sim-walltime 100 --uid=u1 -A a -t 5 -N 2 --job-name=first pseudo.job\n"
    "-dt 1 -e submit_batch_job | -J jobid_2 -sim-walltime 50 --uid=u1 -A a -t 5 -n 8 -p debug pseudo.job\n"
    "-dt 3 -e submit_batch_job | -J jobid_3 -sim-walltime 10 --uid=u1 -A a -t 5 -n 1 --array=0-3%2 pseudo.job\n"
    "-dt 9 -e scancel | 3_1\n",
    "accounts.txt": "Cluster - 'zeus':Fairshare=1:QOS='normal'\nParent - 'root'\n"
    "Account - 'a':Fairshare=2:GrpTRES=cpu=300,mem=2G\nParent - 'a'\n"
    "User - 'u1':DefaultAccount='a':MaxWallDurationPerJob=60:QOS='normal'\n",
    "qos.txt": "Name|Priority|GraceTime|MaxTRESPU|MaxWall|UsageFactor\nhigh|3|00:01:00|cpu=3|1-00:00:00|1.5\n",
    "reserved.txt": "create reservation=r starttime=now+5minutes duration=1:00 nodes=n[01-02] flags=maint users=u1\n",
    "four.csv": "node,down,up,cause\n0,3000,4000,fan\n1-3,5000,6000.5,\n",
    "down.sacctmgr": "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User\n"
    "zeus|n2|2023-01-02T00:00:00|2023-01-02T01:00:00|DOWN*|Not responding|slurm(64030)\n"
    "zeus|n10|2023-01-03T00:00:00|Unknown|DRAIN||root(0)\n",
    "down.scontrol": "NodeName=n1 Arch=x86_64 CoresPerSocket=8\n   State=IDLE ThreadsPerCore=1\n\n"
    "NodeName=n2 Arch=x86_64\n   State=DOWN+DRAIN\n   Reason=bad DIMM, slot 3 [root@2023-02-03T04:05:06]\n",
    "down.pbs": "02/07/2017 12:00:00;0004;Server@zeus;Node;n1;attributes set: state = offline\n"
    "02/07/2017 12:02:00;0002;Server@zeus;Node;n1;node down: communication closed\n"
    "02/07/2017 13:00:00;0004;Server@zeus;Node;n1;attributes set: state - offline\n"
    "02/07/2017 13:30:00.25;0002;Server@zeus;Node;n1;node up\n",
    "down.json": '{"timestamp": 5, "type": "machine_unavailable", "resources": "0-1"}\n'
    '{"timestamp": 9, "type": "machine_available", "resources": "0-1"}\n',
    "events.txt": '{"timestamp": 5, "type": "machine_unavailable", "resources": "0-1"}\n'
    '{"timestamp": 9, "type": "machine_available", "resources": "0-1"}\n',
    "lanl.csv": "System,machine type,nodes,nodenum,nodenumz,node install,node prod,node decom,Prob Started,Prob Fixed,"
    "Facilities,Hardware,Human Error,Network,Undetermined,Software\n"
    "20,cluster,3,1,1,1-Oct,1-Dec,current,1/6/2002 10:54,1/6/2002 11:00,,CPU,,,,\n"
    "20,cluster,3,2,2,1-Oct,1-Dec,current,1/7/2002 10:54,1/8/2002 11:00,,,,,,DST\n",
    "lives.csv": "SN,location,insert,remove,duration,out,event\n"
    "01,c0-0c0s0n0,2014-01-21 10:00:00,2016-01-21 10:00:00,63072000,TRUE,DBE\n"
    "01,c0-0c0s0n1,2016-02-01 00:00:00,2019-01-01 00:00:00,92016000,FALSE,\n"
    "02,c0-0c0s0n0,2017-01-01 00:00:00,2019-01-01 00:00:00,63072000,FALSE,\n",
}  # fmt: skip


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
    """Return a damaged snapshot with its digest corrected, so that the digest does not reveal the damage.

    The reader then parses the damaged state. If the header itself is damaged, the content is returned unchanged.
    """
    head, _, body = content.partition(b"\n")
    try:
        header = json.loads(head)
        header["sha256"] = hashlib.sha256(body).hexdigest()
        return json.dumps(header).encode() + b"\n" + body
    except (ValueError, TypeError, KeyError, RecursionError):
        return content


def make(home: Path) -> str:
    """Create one valid file of each kind in a folder; return an error text, or an empty one."""
    prepare(home)
    for name, text in _FILES.items():
        (home / name).write_text(text, encoding="ascii")
    for name, example in (("shared.toml", "shared/cluster.toml"), ("shared.sacct", "shared/jobs.sacct")):
        shutil.copyfile(_EXAMPLES / example, home / name)
    shutil.copyfile(_EXAMPLES / "classes.toml", home / "classes.toml")
    (home / "keys").mkdir()
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
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_S, LIMIT_S + 1))


def fault(code: int | None, said: str) -> str:
    """Return what is wrong with a command's exit code and output, or an empty text.

    Args:
        code: the exit code; None if the command did not end.
        said: the output.
    """
    if code is None:
        return f"does not end within {PATIENCE_S:g} s"
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        return f"does not end within {LIMIT_S} s of processor time"
    if "Traceback" in said or code not in CODES:
        return f"ends with exit code {code}: {said[-300:]!r}"
    lines = [line for line in said.splitlines() if line.startswith("pipistrelle: ")]
    if code == 2 and not said.strip():
        return f"says nothing: {said[-300:]!r}"
    return (
        "" if max(map(len, lines), default=0) <= _LONGEST else f"says too much: {len(max(lines, key=len))} characters"
    )


def answer(whole: Path, home: Path, reader: Reader, content: bytes | None) -> tuple[int | None, str]:
    """Run a reader's command in a temporary copy of the folder of input files.

    Args:
        whole: folder with all undamaged files.
        home: path of the copy, which is removed afterwards.
        reader: the command, and the file to replace.
        content: new content of the file; None leaves it undamaged.

    Returns:
        The exit code, or None if the command did not end; and the output.
    """
    shutil.copytree(whole, home)
    if content is not None:
        reader.place(home).write_bytes(content)
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
        code, said = answer(whole, home, reader, None)
        if code != reader.code:
            wrong.append(f"{name}, undamaged: exit code {code}: {said[-300:]}")
    return wrong

"""The nodes that select/linear chooses, compared with an unmodified slurmctld 22.05."""

import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from pipistrelle.platforms.naming.hostlists import compressed, expanded
from pipistrelle.protocol.base.errors import InputError
from pipistrelle.protocol.events import JobDescription
from pipistrelle.runs.slurm.files import read_slurm_files
from pipistrelle.runs.slurmctld.bridge import EPOCH_S
from pipistrelle.runs.slurmctld.daemon import Slurmctld
from pipistrelle.runs.slurmctld.installation import find_slurm
from pipistrelle.runs.slurmctld.virtual_time import NANOSECONDS
from pipistrelle.schedulers.slurm.cluster.jobs import COMPLETED, RUNNING
from pipistrelle.schedulers.slurm.files.config import slurm_config
from pipistrelle.schedulers.slurm.files.submission import submission_of
from pipistrelle.schedulers.slurm.passes.controller import Controller
from pipistrelle.schedulers.slurm.passes.main_pass import main_pass
from pipistrelle.traces.slurm.sbatch import parse_sbatch

CONF = """ClusterName=small
SlurmctldHost=head
SelectType=select/linear
PriorityType=priority/basic
{nodes}
PartitionName=batch Nodes=ALL Default=YES MaxTime=1-0
"""
#: what a job gets that does not start
NOTHING = ""


def is_installed() -> bool:
    """Return whether slurmctld and a C compiler are installed."""
    try:
        find_slurm(None)
    except InputError:
        return False
    return shutil.which("cc") is not None


class Ours:
    """The scheduler ``slurm`` with a machine, which can be asked for nodes."""

    def __init__(self, nodes: str, folder: Path) -> None:
        (folder / "slurm.conf").write_text(CONF.format(nodes=nodes))
        files = read_slurm_files(str(folder / "slurm.conf"))
        self._controller = Controller(slurm_config(files.conf)[0])
        self._number = 0

    def start(self, options: str) -> tuple[int, str]:
        """Submit a job; return its number and nodes."""
        self._number += 1
        values = parse_sbatch(options.split(), "job").values
        constraint = values.pop("constraint", None)
        job = JobDescription(f"w0!{self._number}", 1, 60.0, user="ada", options=values, constraint=constraint)
        self._controller.submit([str(self._number)], submission_of(job, 0.0), 0)
        for started in main_pass(self._controller, 1, full=True).started:
            return self._number, compressed(self._controller.machine.names_of(started.nodes))
        return self._number, NOTHING

    def end(self, number: int) -> None:
        """End or cancel a job."""
        (job,) = self._controller.by_number.get(number) or [None]
        if job is not None and job.state == RUNNING:
            self._controller.release(job, COMPLETED, 1)
        elif job is not None:
            self._controller.cancel(job, 1)


class Real:
    """An unmodified slurmctld in virtual time, which can be asked for nodes."""

    def __init__(self, nodes: str, folder: Path) -> None:
        (folder / "slurm.conf").write_text(CONF.format(nodes=nodes))
        self.slurm = Slurmctld(str(folder / "slurm.conf"), (EPOCH_S - 600) * NANOSECONDS)
        self._wait(600)

    def _wait(self, seconds: int) -> None:
        self.slurm.advance(self.slurm.time.now + seconds * NANOSECONDS)

    def start(self, options: str) -> tuple[int, str]:
        """Submit a job; return its number and nodes."""
        number = self.slurm.submit(["--wrap=true", "--time=600", *options.split()], "ada")
        if isinstance(number, str):
            return 0, NOTHING
        self._wait(4)
        found = [start.nodes for start in self.slurm.nodes.take_starts() if start.job_id == number]
        return number, compressed(sorted(expanded(found[0], "nodes"))) if found else NOTHING

    def end(self, number: int) -> None:
        """End or cancel a job."""
        if number in self.slurm.nodes.running:
            self.slurm.nodes.script_ended(number, 0)
        elif number:
            self.slurm.command(["scancel", str(number)])
        self._wait(4)


def asked(machine: Ours | Real, busy: str, options: str) -> str:
    """Return the nodes that a job gets while others are busy."""
    held = machine.start(f"-w {busy} -N {len(expanded(busy, 'nodes'))}")[0] if busy else 0
    number, found = machine.start(options)
    machine.end(number)
    if held:
        machine.end(held)
    return found


def lines(*nodes: tuple[str, int, int]) -> str:
    """Return NodeName lines of (names, CPUs, weight)."""
    return "\n".join(f"NodeName={name} CPUs={cpus} RealMemory=1000 Weight={weight}" for name, cpus, weight in nodes)


SMALL_AND_LARGE = lines(("a[1-4]", 4, 1), ("b[1-2]", 8, 5))
MIXED = lines(("n0", 4, 1), ("n1", 8, 1), ("n2", 4, 1), ("n3", 8, 1), ("n4", 2, 1), ("n5", 8, 1))
GAPS = lines(("e1", 8, 1), ("d[1-4]", 2, 1))
ANSWERS = [
    (SMALL_AND_LARGE, "", "-n 6 -c 2", "a[1-3]"),
    (SMALL_AND_LARGE, "", "-n 12", "a[1-3]"),
    (SMALL_AND_LARGE, "", "-n 18", "a4,b[1-2]"),
    (SMALL_AND_LARGE, "", "-n 24", "a[3-4],b[1-2]"),
    (SMALL_AND_LARGE, "", "-n 1 -c 8", "b1"),
    (SMALL_AND_LARGE, "", "-c 8", "b1"),
    (SMALL_AND_LARGE, "", "-n 2 -c 8", "b[1-2]"),
    (SMALL_AND_LARGE, "", "-n 6 -c 3", "a4,b[1-2]"),
    (SMALL_AND_LARGE, "", "-n 8 -c 3", "a[3-4],b[1-2]"),
    (SMALL_AND_LARGE, "", "-n 1 -c 5", "b1"),
    (SMALL_AND_LARGE, "", "-n 17", "a4,b[1-2]"),
    (SMALL_AND_LARGE, "", "-N 2 -n 10", "b[1-2]"),
    (SMALL_AND_LARGE, "", "-N 5 -n 6", "a[1-4],b1"),
    (SMALL_AND_LARGE, "", "-N 1-3 -n 12 -c 2", NOTHING),
    (SMALL_AND_LARGE, "", "-N 1 -n 8", "b2"),
    (SMALL_AND_LARGE, "", "-N 2-4", "a[1-4]"),
    (SMALL_AND_LARGE, "", "-n 16 --ntasks-per-node=8", "b[1-2]"),
    (SMALL_AND_LARGE, "", "-n 3 --mincpus=6", "b1"),
    (SMALL_AND_LARGE, "", "-N 1 --mincpus=8", "b1"),
    (SMALL_AND_LARGE, "", "-n 1 --ntasks-per-node=6", "a1"),
    (SMALL_AND_LARGE, "", "-n 2 --ntasks-per-node=6", "b1"),
    (SMALL_AND_LARGE, "", "-N 2 -n 8 --ntasks-per-node=2", NOTHING),
    (SMALL_AND_LARGE, "", "-w a1,a2", "a[1-2]"),
    (SMALL_AND_LARGE, "", "-w a[1-3] -n 2", "a[1-2]"),
    (SMALL_AND_LARGE, "", "-w b1 -n 12", "a4,b1"),
    (SMALL_AND_LARGE, "", "-w a3 -n 6", "a[3-4]"),
    (SMALL_AND_LARGE, "", "-N 1 -w a1,a2", NOTHING),
    (SMALL_AND_LARGE, "", "-N 5-9 -n 6", "a[1-4],b[1-2]"),
    (MIXED, "", "-n 5", "n1"),
    (MIXED, "", "-n 17", "n[1-3]"),
    (MIXED, "", "-n 30", "n[0-3,5]"),
    (MIXED, "", "-N 2 -n 13", "n[1,3]"),
    (MIXED, "n1", "-n 5", "n[0,2]"),
    (MIXED, "n1", "-n 20", "n[2-3,5]"),
    (MIXED, "n1", "-n 24", "n[0,2-3,5]"),
    (MIXED, "n1", "-N 2-4 -n 8", "n[0,2-4]"),
    (MIXED, "n4", "-N 2 --contiguous", "n[0-1]"),
    (MIXED, "n2", "-N 3 --contiguous", "n[3-5]"),
    (MIXED, "n[1,3]", "-N 2 --contiguous", "n[4-5]"),
    (MIXED, "n1", "-w n3 -N 3", "n[0,2-3]"),
    (GAPS, "d[3-4]", "-N 2", "d1,e1"),
    (GAPS, "d3", "-N 2", "d[1-2]"),
    (GAPS, "d3", "-N 3", "d[1,4],e1"),
]


@pytest.mark.parametrize(("nodes", "busy", "options", "expected"), ANSWERS)
def test_nodes_are_those_of_slurmctld(nodes: str, busy: str, options: str, expected: str, tmp_path: Path) -> None:
    """The expected nodes are those that slurmctld 22.05.8 gave."""
    assert asked(Ours(nodes, tmp_path), busy, options) == expected


def random_machine(rng: random.Random) -> tuple[str, list[str]]:
    """Return NodeName lines and the names of the nodes."""
    names: list[str] = []
    text = ""
    equal = rng.random() < 0.2
    for letter in rng.sample("abcdefgh", rng.randint(1, 4)):
        count, cpus = rng.randint(1, 5), 4 if equal else rng.choice([2, 3, 4, 4, 6, 8, 8, 16])
        text += f"NodeName={letter}[1-{count}] CPUs={cpus} Weight={rng.choice([1, 1, 1, 2, 5])}"
        text += f" RealMemory={rng.choice([1000, 2000])} Feature={rng.choice(['x', 'y', 'x,y'])}\n"
        names += [f"{letter}{number}" for number in range(1, count + 1)]
    return text, sorted(names)


def random_options(rng: random.Random, names: Sequence[str]) -> str:
    """Return sbatch options of a job whose number of nodes is in no range."""
    nodes, tasks = rng.randint(1, len(names)), rng.randint(1, 4 * len(names))
    shape = rng.choice(["-n {tasks}", "-N {nodes}", "-N {nodes} -n {tasks}", "-n {tasks} --ntasks-per-node={each}"])
    words = [shape.format(nodes=nodes, tasks=max(tasks, nodes) if "-N" in shape else tasks, each=rng.randint(1, 6))]
    words += [f"-c {rng.randint(1, 6)}"] if rng.random() < 0.3 else []
    words += [f"--mincpus={rng.randint(1, 8)}"] if rng.random() < 0.1 else []
    words += ["--mem=1500"] if rng.random() < 0.1 else []
    words += ["--constraint=x"] if rng.random() < 0.15 else []
    words += [f"--exclude={rng.choice(names)}"] if rng.random() < 0.15 else []
    named = rng.sample(names, min(nodes, 2, tasks))
    words += [f"--nodelist={','.join(named)}"] if rng.random() < 0.15 else []
    words += ["--contiguous"] if rng.random() < 0.1 else []
    return " ".join(words)


def differences(seed: int, folder: Path, more: Callable[[random.Random, Sequence[str]], str]) -> tuple[list[str], int]:
    """Return where the nodes of jobs on a random machine differ from those of slurmctld, and the number of jobs."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    text, names = random_machine(rng)
    ours, real = Ours(text, folder), Real(text, folder)
    found, count = [], 0
    try:
        for _ in range(40):
            free = rng.choice([1.0, 0.7, 0.5])
            busy = compressed(name for name in names if rng.random() >= free)
            options = more(rng, names)
            mine, theirs = asked(ours, busy, options), asked(real, busy, options)
            if set(expanded(theirs, "nodes") if theirs else ()) & set(expanded(busy, "nodes") if busy else ()):
                continue  # slurmctld has started a job on busy nodes
            count += 1
            if mine != theirs:
                found.append(f"{text} busy {busy}, {options}: {mine}, slurmctld {theirs}")
    finally:
        real.slurm.close()
    return found, count


@pytest.mark.slow
@pytest.mark.skipif(not is_installed(), reason="Slurm 22.05 or a C compiler is not installed")
@pytest.mark.parametrize("seed", range(6))
def test_random_jobs_get_the_nodes_of_slurmctld(seed: int, tmp_path: Path) -> None:
    """On random machines, each job gets the nodes that the installed slurmctld gives."""
    found, count = differences(seed, tmp_path, random_options)
    assert found == []
    assert count >= 30

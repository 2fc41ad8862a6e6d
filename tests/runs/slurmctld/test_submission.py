"""Jobs of the protocol as calls of sbatch, and nodes of slurmctld as resources of the protocol."""

from pipistrelle.protocol.events import JobDescription
from pipistrelle.protocol.resources.nodes import NodeTake
from pipistrelle.protocol.resources.request import Request
from pipistrelle.runs.slurmctld.submission import sbatch_words, takes_on

SCRIPT = ["--chdir=/", "--output=/dev/null", "--wrap=exit"]


def test_options_are_passed_on() -> None:
    """Long options as submitted; what the protocol has in other fields is added."""
    options = {"nodes": "2", "exclusive": "", "begin": "now+60", "dependency": "afterok:5", "partition": "a,b"}
    job = JobDescription("w0!7", 2, 90.5, user="ada", account="bio", queue="a", options=options, constraint="new&ib")
    assert sbatch_words(job, lambda text: text.replace("5", "105")) == [
        *("--job-name=7", "--account=bio", "--partition=a,b", "--time=0:01:31", "--constraint=new&ib"),
        *("--dependency=afterok:105", "--nodes=2", "--exclusive", "--begin=now+60", *SCRIPT),
    ]


def test_a_log_without_submissions_gives_requests() -> None:
    """A request, or else a number of whole nodes."""
    request = Request(tasks=4, cores_per_task=2000, memory_per_core=500, gpus_per_node=1, gpu_models=("a100",))
    assert sbatch_words(JobDescription("w0!1", 1, 60.0, request=request), str)[2:-3] == [
        *("--ntasks=4", "--cpus-per-task=2", "--mem-per-cpu=500", "--gres=gpu:a100:1"),
    ]
    assert sbatch_words(JobDescription("w0!1", 3), str) == ["--job-name=1", "--nodes=3", *SCRIPT]


def test_tasks_fill_nodes_and_each_gets_one() -> None:
    """12 tasks on 8, 8 and 1 CPUs; the lowest free GPUs are taken."""
    request = Request(tasks=12, gpus_per_node=2)
    free = {4: [0, 1, 2, 3], 5: [1, 3], 9: [2, 3]}
    assert takes_on(request, {4: 8, 5: 8, 9: 1}, free) == (
        NodeTake("4", 8, "0-1"),
        NodeTake("5", 3, "1 3"),
        NodeTake("9", 1, "2-3"),
    )

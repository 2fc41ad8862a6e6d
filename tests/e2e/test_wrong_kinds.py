"""`pipistrelle validate` accepts no file as another kind than it is."""

import lzma
import os
from pathlib import Path

import pytest

OPENB = Path(os.environ.get("PIPISTRELLE_TRACES", "/nowhere")) / "openb"

#: (name, content, fragments of the message)
FILES = [
    ("some.csv", "cpu_milli,memory_mib,gpu\n12000,16384,1\n", ["neither of pods nor of nodes"]),
    ("people.csv", "id,name,email\n1,Alice,a@x\n", ["names, but not of nodes", "class, mttf, age or installed"]),
    ("cities.csv", "city,location\nParis,France\n", ["places, but not of nodes"]),
    ("names.csv", "name\none\ntwo\n", ["names, but not of nodes"]),
    ("numbers.csv", "1,2,3\n4,5,6\n", ["not recognised"]),
    ("outages.csv", "node,down,up,cause\n0,10,20,failure\n", ["a list of outages", "failures show"]),
    ("jobs.csv", "job_id,workload_name,submission_time\n1,w,0\n", ["table of jobs", "pipistrelle report"]),
    ("slurm.conf", "# the controller\nClusterName=zeus\nNodeName=n[1-4] CPUs=4\n", ["no partition"]),
    ("job.sh", "#!/bin/sh\n#SBATCH -n 4\nsrun hello\n", ["not recognised"]),
    ("list.yaml", "- a\n- b\n", ["not recognised"]),
    ("readme.txt", "Hello world\n", ["not recognised"]),
    ("page.html", "<html><body>x</body></html>", ["not a SimGrid platform", "<html>"]),
    ("hosts.json", '{"nb_res": 4, "hosts": ["a", "b"]}', ["not recognised", "'nb_res', 'hosts'"]),
    ("frame.json", '{"seq": 1, "now": 0.0, "events": []}', ["not recognised"]),
    ("text.json", '"text"', ["not recognised"]),
    ("cargo.toml", '[package]\nname = "x"\n', ["not recognised", "'package'"]),
    ("scheduler.toml", 'argv = ["mine", "{endpoint}"]\n', ["not recognised", "'argv'"]),
    ("preset.toml", 'order = "fcsf"\n', ["there is no order 'fcsf'"]),
]


@pytest.mark.parametrize(("name", "content", "fragments"), FILES, ids=[case[0] for case in FILES])
def test_a_file_of_another_kind_is_refused(shell, name, content, fragments):
    """The message says what the file is, if known."""
    shell.write(name, content)

    shell.run("validate", name).failed(2, name, *fragments)


@pytest.mark.parametrize(
    ("name", "content", "fragments"),
    [
        ("outages.csv", "node,down,up,cause\n0,10,20,failure\n", ["this is a list of outages", "--outages FILE"]),
        ("mine.toml", 'scheduler = "easy"\n', ["this is a TOML file", "--platform", "pipistrelle run FILE"]),
        ("readme.txt", "Hello world\n", ["not recognised", "pipistrelle help workloads"]),
    ],
)
def test_a_run_names_the_kind_of_a_file_that_is_no_workload(shell, name, content, fragments):
    """The file is not read as SWF, which has no signature."""
    shell.write(name, content)

    done = shell.run("run", "-w", name).failed(2, name, "expected a workload", *fragments)
    assert "18 numbers" not in done.err


@pytest.mark.skipif(not OPENB.is_dir(), reason="needs the trace openb")
def test_lists_of_pods_and_of_nodes_are_what_they_are(shell):
    """Both have a column of names and many rows, like a table of nodes."""
    shell.write("pods.csv", lzma.decompress((OPENB / "openb_pod_list_default.csv.xz").read_bytes()))

    assert "list of pods" in shell.run("validate", "pods.csv").out
    machine = shell.run("validate", str(OPENB / "openb_node_list_gpu_node.csv"))
    assert "1,213 nodes" in machine.out


def test_a_preset_and_a_failure_model_are_named(shell):
    """Neither is read as a run or a platform."""
    shell.write("preset.toml", 'description = "mine"\norder = "sjf"\nbackfill = "easy"\n')
    shell.write("model.toml", 'name = "m"\nnodes = 4\n[failures]\ndistribution = "exponential"\nmean = 864000.0\n')
    lines = shell.run("validate", "preset.toml", "model.toml").ok().out.splitlines()

    assert [line.split() for line in lines[:2]] == [["preset.toml:", "valid"], ["scheduler", "mine"]]
    assert lines[-1].split()[:2] == ["failure", "model"]
    assert "exponential, MTBF of a node 10 days, 4 nodes" in lines[-1]

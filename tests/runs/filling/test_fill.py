"""Fills of shared nodes: published figures, equal results for equal seeds, and bad lists."""

import csv
from collections import defaultdict

import numpy as np
import pytest

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.runs.filling.experiment import POINTS, fill
from pipistrelle.runs.filling.openb import read_nodes, read_pods

NODES = "sn,cpu_milli,memory_mib,gpu,model\na,8000,1000,2,T4\nb,4000,1000,0,\n"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"
PUBLISHED = {
    "random": "Random",
    "dot-product": "DotProd",
    "gpu-clustering": "GpuClustering",
    "gpu-packing": "GpuPacking",
    "best-fit": "BestFit",
    "fgd": "FGD",
}


@pytest.fixture(scope="module")
def openb(traces_dir):
    """Return the folder of openb's lists, or skip."""
    if not (traces_dir / "openb" / "expected.csv").is_file():
        pytest.skip(f"openb's lists are absent: no {traces_dir / 'openb'} (set PIPISTRELLE_TRACES)")
    return traces_dir / "openb"


def farthest(folder, workload, placement, seeds):
    """Return the greatest distance of the means over seeds from the published means, in points."""
    expected = defaultdict(list)
    with (folder / "expected.csv").open() as file:
        for row in csv.DictReader(file):
            if (row["workload"], row["policy"]) == (workload, PUBLISHED[placement]):
                expected[row["figure"]].append([float(row["arrived_percent"]), float(row["mean"])])
    nodes = read_nodes(str(folder / "openb_node_list_gpu_node.csv"))
    pods = read_pods(str(folder / f"openb_pod_list_{workload}.csv.xz"), nodes)
    fills = [fill(nodes, pods, placement, until=1.3, seed=seed) for seed in seeds]
    means = {name: np.mean([getattr(one, name) for one in fills], axis=0) for name in expected}
    assert [point for point, _ in means["allocated"]] == list(POINTS)
    return max(np.abs(means[name] - expected[name]).max() for name in expected)


@pytest.mark.slow
def test_best_fit_on_the_default_list_is_as_published(openb):
    """A small part of the slow comparison."""
    assert farthest(openb, "default", "best-fit", range(42, 45)) < 0.5


@pytest.mark.slow
@pytest.mark.parametrize("workload", ["default", "gpuspec33", "multigpu50"])
@pytest.mark.parametrize("placement", PUBLISHED)
def test_means_of_ten_seeds_are_as_published(openb, workload, placement):
    """Each figure is within 0.5 points of the published mean of ten seeds."""
    assert farthest(openb, workload, placement, range(42, 52)) < 0.5


@pytest.fixture
def written(tmp_path):
    """Return a function that writes both lists and reads them."""

    def both(pods, nodes=NODES):
        (tmp_path / "nodes.csv").write_text(nodes)
        (tmp_path / "pods.csv").write_text(pods)
        found = read_nodes(str(tmp_path / "nodes.csv"))
        return found, read_pods(str(tmp_path / "pods.csv"), found)

    return both


def test_equal_seeds_give_equal_fills(written):
    """Points are measured up to the percentage given."""
    nodes, pods = written(PODS + "p,1000,10,1,300,\nq,1000,10,0,,\nr,500,10,1,500,T4\n")
    same = [fill(nodes, pods, "random", until=1.3, seed=7) for _ in range(2)]

    assert same[0] == same[1]
    assert [point for point, _ in same[0].allocated] == list(POINTS)
    assert fill(nodes, pods, "fgd", until=0.9, seed=7).allocated[-1][0] == 80


def test_empty_fields_and_ignored_input(written):
    """Empty numbers are 0, an empty gpu_milli is a whole GPU; what is ignored is counted."""
    _, pods = written(PODS + "p,,,1,,\nq,1,1,0,300,T4\nr,1,1,1,1000,H100\ns,1,1,3,1000,\n")

    assert pods.requests[0].gpu_amount == 1000
    assert pods.requests[0].amounts == (0, 0)
    assert pods.warnings == (
        "gpu_milli of 1 pod without GPUs is ignored",
        "gpu_spec of 1 pod without GPUs is ignored",
        "no node has a GPU of the models H100, which the pods name",
        "2 pods of 4 can never run: no node is large enough or of its model",
    )


@pytest.mark.parametrize(
    ("pods", "nodes", "message"),
    [
        ("name,cpu_milli,memory_mib,num_gpu\np,1,1,1\n", NODES, "gpu_milli"),
        (PODS + "p,-1,1,1,1000,\n", NODES, "line 2.*out of range"),
        (PODS + "p,NaN,1,1,1000,\n", NODES, "line 2.*out of range"),
        (PODS + "p,99999999999999999999,1,1,1000,\n", NODES, "line 2.*out of range"),
        (PODS + "p,1,1,1,1001,\n", NODES, "from 0 to 1,000"),
        (PODS + "p,1,1,1,0,\n", NODES, "takes nothing"),
        (PODS + "p,1,1,0,0,\n", NODES, "no pod of the list requests a GPU"),
        (PODS + "p,9000,1,1,1000,\n", NODES, "fits any node"),
        (PODS, NODES, "no pod"),
        (PODS + "p,1,1,1,1000,\n", NODES + "a,1,1,0,\n", "two nodes have the same name"),
        (PODS + "p,1,1,1,1000,\n", NODES.split("\n", maxsplit=1)[0] + "\n", "has no nodes"),
    ],
)
def test_a_bad_list_gives_one_message(written, pods, nodes, message):
    """Each fault is refused with file, line or reason."""
    with pytest.raises(PipistrelleError, match=message):
        written(pods, nodes)

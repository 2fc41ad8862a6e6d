"""Measure how often per minute a cluster of shared nodes can be filled with pods.

Pods are jobs that request cores, memory and GPU shares.

    python benchmarks/fill.py FOLDER [--seeds 1]

FOLDER holds the files of the openb traces: one list of nodes and several lists of pods. Every placement fills the
cluster from every list. If FOLDER also has expected.csv, the mean allocation and fragmentation are compared with it.
"""

import argparse
import csv
from pathlib import Path
from time import perf_counter

import numpy as np

from pipistrelle.runs.filling.experiment import fill
from pipistrelle.runs.filling.openb import read_nodes, read_pods

NAMES = {
    "random": "Random",
    "dot-product": "DotProd",
    "gpu-clustering": "GpuClustering",
    "gpu-packing": "GpuPacking",
    "best-fit": "BestFit",
    "fgd": "FGD",
}


def main() -> None:
    """Run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--placement", choices=NAMES, action="append")
    told = parser.parse_args()
    nodes = read_nodes(str(told.folder / "openb_node_list_gpu_node.csv"))
    expected: dict[tuple[str, str, str], list[float]] = {}
    if (told.folder / "expected.csv").is_file():
        with (told.folder / "expected.csv").open() as file:
            for row in csv.DictReader(file):
                key = row["workload"], row["policy"], row["figure"]
                expected.setdefault(key, []).append(float(row["mean"]))
    runs, begin = 0, perf_counter()
    for path in sorted(told.folder.glob("openb_pod_list_*")):
        workload = path.name.removeprefix("openb_pod_list_").partition(".")[0]
        pods = read_pods(str(path), nodes)
        for placement in told.placement or NAMES:
            fills = [fill(nodes, pods, placement, until=1.3, seed=42 + seed) for seed in range(told.seeds)]
            runs += told.seeds
            for figure in ("allocated", "fragmented"):
                means = np.mean([[value for _, value in getattr(one, figure)] for one in fills], axis=0)
                line = f"{workload:12} {placement:15} {figure:10} {np.round(means, 2)}"
                if (known := expected.get((workload, NAMES[placement], figure))) is not None:
                    line += f" farthest {np.abs(means - known).max():.2f}"
                print(line, flush=True)
    print(f"{60 * runs / (perf_counter() - begin):.1f} runs a minute")


if __name__ == "__main__":
    main()

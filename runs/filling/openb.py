"""Read lists of nodes and pods in the format openb.

They have the columns of Alibaba's cluster-trace-gpu-v2023.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.resources.node_request import OneNodeRequest
from pipistrelle.platforms.resources.shared_nodes import NO_MODEL, SharedNodes
from pipistrelle.protocol.resources.amounts import CORES, MEMORY, MILLI
from pipistrelle.runs.inputs.node_list import read_node_list
from pipistrelle.traces.clusters.csv_rows import Cells, CsvLines
from pipistrelle.traces.clusters.gpu_log import whole_cell
from pipistrelle.traces.clusters.pods import POD_COLUMNS
from pipistrelle.traces.errors import TraceError, counted
from pipistrelle.traces.files import open_trace

#: columns that a fill reads; other columns are ignored, as the published experiment ignores them
_SPEC: Final = "gpu_spec"


@dataclass(frozen=True)
class PodList:
    """The pods of a list.

    Attributes:
        requests: the different requests.
        pods: for each pod, the index of its request.
        warnings: sentences on ignored parts of the list, with counts.
    """

    requests: tuple[OneNodeRequest, ...]
    pods: tuple[int, ...]
    warnings: tuple[str, ...]

    def counts(self) -> dict[OneNodeRequest, int]:
        """Return how often each request occurs."""
        numbers = np.bincount(self.pods, minlength=len(self.requests)).tolist()
        return dict(zip(self.requests, numbers, strict=True))


def read_nodes(path: str) -> SharedNodes:
    """Read a list of nodes: sn, cpu_milli, memory_mib, gpu, model.

    Raises:
        PipistrelleError: a column is missing, a number is malformed, or a name occurs twice. The error names file and
            line.
    """
    names, kinds = read_node_list(path)
    found = [kind.model for kind in kinds]
    models = tuple(sorted(set(found) - {""}))
    try:
        return SharedNodes(
            (CORES, MEMORY),
            np.array([(kind.cores, kind.memory) for kind in kinds], dtype=np.int64),
            gpu_counts=np.array([kind.gpus for kind in kinds], dtype=np.int64),
            models=models,
            model_of=np.array([models.index(model) if model else NO_MODEL for model in found], dtype=np.int64),
            names=tuple(names),
        )
    except PlatformError as error:
        raise error.at(path, PlatformError) from None


def read_pods(path: str, nodes: SharedNodes) -> PodList:
    """Read a list of pods.

    Its columns are name, cpu_milli, memory_mib, num_gpu, gpu_milli, and perhaps gpu_spec. An empty number is 0; an
    empty ``gpu_milli`` of a pod with GPUs is 1000. ``gpu_spec`` lists the accepted GPU models, separated by ``|``;
    empty: any model.

    Raises:
        PipistrelleError: a column is missing, a number is malformed, no pod has a GPU, or no pod fits an empty node.
            The error names file and line.
    """
    number_of: dict[OneNodeRequest, int] = {}
    pods: list[int] = []
    ignored: dict[str, int] = {}
    unknown: set[str] = set()
    with open_trace(path, what="a list of pods") as stream:
        for cells in CsvLines(stream, path, POD_COLUMNS, ",".join(POD_COLUMNS)):
            request, strange = _request(cells, nodes.models, ignored)
            unknown |= strange
            pods.append(number_of.setdefault(request, len(number_of)))
    listed = PodList(tuple(number_of), tuple(pods), _warnings(nodes, list(number_of), pods, ignored, unknown))
    if not any(request.gpu_amount for request in listed.requests):
        raise TraceError("no pod of the list requests a GPU", where=path, expected="pods with num_gpu of at least 1")
    if not any(nodes.ever_fits(request).any() for request in listed.requests):
        raise TraceError(
            "no pod of the list fits any node, even an empty one", where=path, hint="Check that both lists match."
        )
    return listed


def _request(cells: Cells, models: tuple[str, ...], ignored: dict[str, int]) -> tuple[OneNodeRequest, set[str]]:
    """Return a pod's request, and the models that no node has.

    Count ignored values of the pod in ``ignored``, by column.
    """
    gpus = whole_cell(cells, "num_gpu", most=MILLI)
    share = MILLI if gpus and not cells["gpu_milli"] else whole_cell(cells, "gpu_milli", most=MILLI)
    if gpus and not share:
        raise cells.fault("a pod with GPUs takes nothing of them", f"gpu_milli from 1 to {MILLI}", "gpu_milli")
    names = {name.strip() for name in cells.get(_SPEC, "").split("|")} - {""}
    if not gpus:
        for column, given in (("gpu_milli", bool(share)), (_SPEC, bool(names))):
            ignored[column] = ignored.get(column, 0) + given
        share, names = MILLI, set()
    strange = names - set(models)
    accepted = tuple(index for index, name in enumerate(models) if name in names) if names else None
    amounts = whole_cell(cells, "cpu_milli"), whole_cell(cells, "memory_mib")
    return OneNodeRequest(amounts, gpus, share, accepted), strange


def _warnings(
    nodes: SharedNodes, requests: Sequence[OneNodeRequest], pods: list[int], ignored: dict[str, int], unknown: set[str]
) -> tuple[str, ...]:
    found = [
        f"{column} of {counted(count, 'pod')} without GPUs is ignored" for column, count in ignored.items() if count
    ]
    if unknown:
        found.append(f"no node has a GPU of the models {', '.join(sorted(unknown))}, which the pods name")
    hopeless = {number for number, request in enumerate(requests) if not nodes.ever_fits(request).any()}
    count = sum(number in hopeless for number in pods)
    if count:
        found.append(f"{counted(count, 'pod')} of {len(pods):,} can never run: no node is large enough or of its model")
    return tuple(found)

"""Trials of a study with the engine ``fill``.

Such a trial fills a cluster of GPU nodes with pods (jobs) that never end.
"""

from functools import lru_cache
from typing import Final

from pipistrelle.platforms.resources.shared_nodes import SharedNodes
from pipistrelle.protocol.base.errors import printable
from pipistrelle.protocol.base.log import logger
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.filling.experiment import UNTIL, fill, metric_names, parse_until
from pipistrelle.runs.filling.openb import PodList, read_nodes, read_pods
from pipistrelle.schedulers.sharing.placements import check_shared
from pipistrelle.studies.errors import StudyError

#: the default placement
_PLACEMENT: Final = "fgd"


def check_fill(spec: RunSpec) -> set[str]:
    """Read the inputs of a fill, and return the names of its metrics.

    Warnings about the lists of nodes and pods are logged.

    Raises:
        PipistrelleError: the lists of nodes or pods are missing or wrong, the placement is unknown, or the end of the
            fill is not a percentage.
    """
    if spec.platform is None or len(spec.workload) != 1:
        raise StudyError(
            "a fill needs a list of nodes and a list of pods", expected="platform = NODES.csv, workload = PODS.csv"
        )
    check_shared(spec.placement or _PLACEMENT)
    for warning in _lists(spec.platform, spec.workload[0])[1].warnings:
        logger().warning("{}: {}", printable(spec.workload[0]), warning)
    return metric_names(_until(spec))


def filled(spec: RunSpec) -> dict[str, float]:
    """Carry out a fill; return its metrics by name."""
    nodes, pods = _lists(str(spec.platform), spec.workload[0])
    return fill(nodes, pods, spec.placement or _PLACEMENT, until=_until(spec), seed=spec.seed).metrics


def _until(spec: RunSpec) -> float:
    try:
        return parse_until(spec.until or UNTIL)
    except ValueError:
        raise StudyError(
            "the end of a fill is wrong", where="until", expected="a percentage, such as '130%'", found=f"{spec.until}"
        ) from None


@lru_cache(maxsize=4)
def _lists(nodes: str, pods: str) -> tuple[SharedNodes, PodList]:
    read = read_nodes(nodes)
    return read, read_pods(pods, read)

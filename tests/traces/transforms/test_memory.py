"""Memory from SWF logs becomes requests, and the memory of requests is multiplied."""

from dataclasses import replace
from pathlib import Path

import pytest

from pipistrelle.protocol.resources.request import Request
from pipistrelle.runs.inputs.steps import Scale
from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.load import load
from pipistrelle.traces.transforms.memory import scale_memory
from pipistrelle.traces.workload import Workload


@pytest.fixture
def log(tmp_path: Path) -> Workload:
    """Return three jobs: field 10 known, only field 7 known, and neither."""
    rows = [(1000, 2049), (1025, -1), (-1, -1)]
    path = tmp_path / "log.swf"
    path.write_text("".join(f"{n} {n} 0 9 4 9 {used} 4 20 {asked} 1 1 1 1 1 1 -1 -1\n" for n, (used, asked) in
                            enumerate(rows, start=1)))  # fmt: skip
    return load(path)


def test_fields_10_and_7_become_memory_per_core(log: Workload) -> None:
    """The requested memory counts, else the used memory, in KiB rounded up to MiB; other jobs ask for none."""
    workload, unknown = scale_memory(log, 1.0)
    assert workload.requests == [Request(tasks=4, memory_per_core=3), Request(tasks=4, memory_per_core=2), None]
    assert unknown == 1


def test_memory_of_requests_is_multiplied_and_bounded(log: Workload) -> None:
    """Requests keep all else; an amount beyond the largest, or a log without memory, is one message."""
    asked = [Request(tasks=4, gpus=1, memory_per_gpu=3), Request(memory_per_node=5), Request(tasks=1)]
    workload, unknown = scale_memory(replace(log, requests=asked), 0.5)
    assert workload.requests == [
        Request(tasks=4, gpus=1, memory_per_gpu=2),
        Request(memory_per_node=3),
        Request(tasks=1),
    ]
    assert unknown == 1
    with pytest.raises(TraceError, match=r"memory of job 1 is too large.*MiB"):
        scale_memory(log, 1e15)
    with pytest.raises(TraceError, match="no job says how much memory it needs"):
        Scale(memory="1").apply(log.select([2]))

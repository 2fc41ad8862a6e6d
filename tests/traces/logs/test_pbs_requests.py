"""What PBS's select says that jobs take of shared nodes."""

from pathlib import Path

import pytest

from pipistrelle.protocol.resources.request import Request
from pipistrelle.traces.load import load


def request(tmp_path: Path, asked: str) -> Request | None:
    """Read the request of one job."""
    path = tmp_path / "log.pbs"
    path.write_text(
        "06/01/2024 10:00:00;E;1.server;user=a queue=q ctime=1717230000 qtime=1717230000 start=1717230060 "
        f"end=1717233600 exec_host=n1/0 {asked} Resource_List.walltime=01:00:00 Exit_status=0\n"
    )
    requests = load(path).requests
    return None if requests is None else requests[0]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (
            "Resource_List.select=2:ncpus=24:mem=64gb:ngpus=2 Resource_List.place=scatter",
            Request(
                nodes=2,
                most_nodes=2,
                tasks=2,
                tasks_per_node=1,
                cores_per_task=24_000,
                memory_per_core=2731,
                gpus_per_task=2,
            ),
        ),
        (
            "Resource_List.select=4:ncpus=2 Resource_List.place=pack:excl",
            Request(nodes=1, most_nodes=1, tasks=4, cores_per_task=2000, exclusive=True),
        ),
        ("Resource_List.select=3:ncpus=8", Request(tasks=3, cores_per_task=8000)),
        (
            "Resource_List.nodes=2:ppn=8 Resource_List.mem=32gb",
            Request(tasks=2, cores_per_task=8000, memory_per_core=2048),
        ),
        (
            "Resource_List.select=1:ncpus=24:mem=96gb+2:ncpus=12:mem=24gb:ngpus=1",
            Request(tasks=48, gpus=2, memory_per_core=3072),
        ),
        ("Resource_List.ncpus=8", None),
    ],
)
def test_chunks_become_tasks(tmp_path: Path, asked: str, expected: Request | None) -> None:
    """A chunk is a task with all that it takes; unequal chunks are added up."""
    assert request(tmp_path, asked) == expected


def test_a_chunk_without_a_number_counts_once(tmp_path: Path) -> None:
    """PBS accepts `ncpus=2:mem=1gb` for `1:ncpus=2:mem=1gb`; a first part without a value is a node's name."""
    one, two = (request(tmp_path, f"Resource_List.select={text}ncpus=2:mem=1gb") for text in ("", "1:"))
    assert one == two
    assert one is not None
    assert (one.all_cores, one.all_memory) == (2000, 1024)
    assert request(tmp_path, "Resource_List.nodes=n1+n2") == Request(tasks=2, cores_per_task=1000)


def test_other_amounts_of_a_chunk_are_counted(tmp_path: Path) -> None:
    """They are ignored, and a message says of how many jobs."""
    lines = [
        f"04/05/2017 13:00:00;E;{job}.srv;user=a ctime=1491397200 start=1491397210 end=1491397500 "
        f"Resource_List.select=1:ncpus=2:matlab={job}"
        for job in (1, 2)
    ]
    path = tmp_path / "20170301"
    path.write_text("\n".join(lines) + "\n")
    assert load(path).remarks == ("the resource 'matlab' that 2 jobs asked for in select or nodes is ignored",)

"""What the accounting of Slurm says that jobs take of shared nodes."""

from pathlib import Path

import pytest

from pipistrelle.protocol.resources.request import Request
from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.load import load
from pipistrelle.traces.workload import Workload

HEADER = "JobID|Submit|Start|End|State|Timelimit|NNodes|ReqCPUS|ReqMem|ReqTRES|AllocTRES|Constraints|SubmitLine"


def read(tmp_path: Path, *rows: str, **options: bool) -> Workload:
    """Read rows in which only the last six columns differ."""
    path = tmp_path / "jobs.sacct"
    times = "2024-01-31T08:00:00|2024-01-31T08:00:00|2024-01-31T09:00:00|COMPLETED|02:00:00"
    lines = [f"{number}|{times}|{row}" for number, row in enumerate(rows, start=1)]
    path.write_text("\n".join([HEADER, *lines, ""]))
    return load(path, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("1|8|16G|billing=8,cpu=8,mem=16G,node=1|||", {"memory_per_node": 16384}),
        ("1|8|4000Mn||||", {"memory_per_node": 4000}),
        ("2|8|2Gc||||", {"memory_per_core": 2048, "nodes": 2, "most_nodes": 2}),
        ("2|8|16G|cpu=8,mem=16G,node=2|||", {"memory_per_core": 2048, "nodes": 2, "most_nodes": 2}),
        ("2|8|16G|cpu=8,mem=16G,node=2|||sbatch --mem=8G x", {"memory_per_node": 8192, "nodes": 2, "most_nodes": 2}),
        ("1|8|0|cpu=8,mem=0,node=1|||", {}),
        ("1|8|1.50T|cpu=8,mem=1.50T,node=1|||", {"memory_per_node": 1572864}),
        ("1|8|?|cpu=8,node=1,gres/gpu=2,gres/gpu:a100=2|||", {"gpus_per_node": 2, "gpu_models": ("a100",)}),
        ("2|8||cpu=8,node=2,gres/gpu=3|||", {"gpus": 3, "nodes": 2, "most_nodes": 2}),
        ("1|8||cpu=8,node=1,license/matlab=2,gres/nvme=1|||", {"licenses": {"matlab": 2}, "others": {"nvme": 1}}),
        ("1|8|||cpu=8,mem=4G,node=1||", {"memory_per_node": 4096}),
        ("1|8||cpu=8,node=1|||sbatch --exclusive -c 4 x", {"exclusive": True, "tasks": 2, "cores_per_task": 4000}),
    ],
)
def test_columns_become_one_request(tmp_path: Path, row: str, expected: dict[str, object]) -> None:
    """Each spelling of memory, GPUs, licences and options gives the request that Slurm would read."""
    requests = read(tmp_path, row).requests

    assert requests == [Request(**{"nodes": 1, "most_nodes": 1, "tasks": 8, **expected})]  # type: ignore[arg-type]


def test_job_without_resources_has_no_request(tmp_path: Path) -> None:
    """A file without ReqTRES, AllocTRES and ReqMem says nothing about shared nodes."""
    assert read(tmp_path, "1|8|||||").requests is None


def test_constraints_are_read_from_the_column_of_sacct(tmp_path: Path) -> None:
    """The column is called Constraints; Constraint is accepted, too."""
    workload = read(tmp_path, "1|8||||intel&ib|")

    assert workload.labels["constraint"] == ["intel&ib"]


def test_bad_row_is_counted_named_and_left_out(tmp_path: Path) -> None:
    """A row that cannot be read does not cost the other rows."""
    workload = read(tmp_path, "1|8|16G||||", "1|8|16 sacks||||", "1|4|8G||||")

    assert workload.ids == ["1", "3"]
    assert workload.left_out == {"record that cannot be read": 1}
    assert "line 3, field ReqMem" in workload.faults[0]


def test_strict_reading_refuses_a_file_with_a_bad_row(tmp_path: Path) -> None:
    """With strict, the first bad row is an error."""
    with pytest.raises(TraceError, match="line 2, field ReqMem: is not an amount of memory"):
        read(tmp_path, "1|8|16 sacks||||", strict=True)


def test_written_requests_are_read_again(tmp_path: Path) -> None:
    """Writing sacct's table keeps what jobs take of shared nodes."""
    from pipistrelle.traces.slurm.sacct_text import sacct_chunks

    workload = read(
        tmp_path,
        "1|8|16G|cpu=8,mem=16G,node=1,gres/gpu=2,gres/gpu:a100=2|||",
        "2|8|2Gc|cpu=8,node=2|||",
        "1|8||cpu=8,node=1,gres/nvme=3,license/x=1|||sbatch --exclusive -c 4 x",
    )
    again = tmp_path / "again.sacct"
    again.write_bytes(b"".join(sacct_chunks(workload)))

    assert load(again).requests == workload.requests

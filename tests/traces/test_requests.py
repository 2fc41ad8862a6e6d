"""Jobs' requests for nodes in workloads: read, written, bound to pools by partition, dropped."""

import json
from pathlib import Path

import msgspec
import numpy as np
import pytest

from pipistrelle.traces.batsim.text import job_text
from pipistrelle.traces.batsim.workload import parse_batsim
from pipistrelle.traces.describe import describe
from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.load import load, not_kept, save
from pipistrelle.traces.requests import asks, count_requests, with_pools, with_requests, without_requests
from pipistrelle.traces.transforms.join import merge
from pipistrelle.traces.workload import Workload, both, request_of

JOBS = [
    {"id": "1", "subtime": 0, "res": 4, "walltime": 9, "profile": "d", "constraint": "a100|k80", "units_per_node": 2},
    {"id": "2", "subtime": 1, "res": 2, "walltime": 9, "profile": "d", "whole_nodes": True, "partition": 2},
    {"id": "3", "subtime": 2, "res": 1, "walltime": 9, "profile": "d", "partition": "fat", "whole_nodes": False},
]
ASKED = [{"constraint": "a100|k80", "units_per_node": 2}, {"whole_nodes": True}, {}]


def parsed(*jobs: dict[str, object]) -> Workload:
    """Return the workload of some jobs."""
    file = {"jobs": list(jobs), "profiles": {"d": {"type": "delay", "delay": 5}}}
    return parse_batsim(json.dumps(file).encode(), "w.json")


def asked(workload: Workload) -> list[dict[str, str | int | bool]]:
    """Return the request of each job."""
    return [request_of(workload, row) for row in range(len(workload))]


def told(workload: Workload) -> list[dict[str, object]]:
    """Return each job's request as sent to schedulers in Batsim's dialect."""
    texts = [msgspec.json.decode(job_text(workload, row, "w0!x")) for row in range(len(workload))]
    members = ("constraint", "units_per_node", "whole_nodes")
    return [{key: text[key] for key in members if text.get(key)} for text in texts]


def plain(count: int = 3) -> Workload:
    """Return a workload that was not read from JSON, with partition numbers that its header names."""
    return Workload(
        name="t",
        source="t",
        ids=[str(number) for number in range(1, count + 1)],
        submit=np.arange(count, dtype=np.float64),
        size=np.full(count, 4, dtype=np.int64),
        walltime=np.full(count, 9.0),
        runtime=np.full(count, 5.0),
        columns={"partition": np.array([1, 2, -1][:count], dtype=np.int64)},
        header={"Partition": "1 batch\n2 gpu"},
    )


def test_json_says_what_jobs_ask() -> None:
    """The three members are read; absent, false and null mean no request."""
    workload = parsed(*JOBS)

    assert asks(workload)
    assert asked(workload) == ASKED
    assert not asks(parsed({**JOBS[2], "constraint": "", "units_per_node": None, "whole_nodes": None}))


@pytest.mark.parametrize(
    ("member", "value", "says"),
    [
        ("units_per_node", 0, "units on each node of job '1' is out of range: expected a whole number from 1"),
        ("units_per_node", "2", "units_per_node"),
        ("whole_nodes", 1, "whole_nodes"),
    ],
)
def test_members_that_make_no_sense(member: str, value: object, says: str) -> None:
    """The message names the member."""
    with pytest.raises(TraceError, match=says):
        parsed({**JOBS[0], member: value})


def test_json_is_written_with_what_jobs_ask(tmp_path: Path) -> None:
    """Both jobs of a file and others, which are then read again."""
    for workload in (parsed(*JOBS), with_requests(plain(), constraint=["a", "", "b&c"], per_node=np.array([2, -1, 4]))):
        save(workload, tmp_path / "w.json")

        assert asked(load(tmp_path / "w.json")) == asked(workload)
        assert told(load(tmp_path / "w.json")) == asked(workload)
        assert not_kept(workload, "w.json") == [] or "units_per_node" not in not_kept(workload, "w.json")


def test_what_other_formats_do_not_keep_is_named() -> None:
    """SWF keeps none of it, the others no units per node."""
    workload = parsed(*JOBS)

    assert {"constraint", "units_per_node", "whole_nodes"} <= set(not_kept(workload, "w.swf"))
    assert {"units_per_node", "whole_nodes"} <= set(not_kept(workload, "w.sacct"))
    some = "constraint (except for required node features)"
    assert {some, "units_per_node", "whole_nodes"} <= set(not_kept(workload, "w.maui"))


def test_requests_can_be_forgotten() -> None:
    """Jobs may then run on any nodes, also in their JSON; the rest of it is unchanged."""
    workload = without_requests(parsed(*JOBS))

    assert not asks(workload)
    assert told(workload) == [{}, {}, {}]
    assert workload.labels["partition"] == ["", "2", "fat"]
    assert without_requests(plain()).columns.keys() == {"partition"}


def test_jobs_are_bound_to_pools_by_partition() -> None:
    """By number or by its name in the header, in addition to their own requests; JSON objects follow."""
    by_number = with_pools(plain(), {"2": ("gpu", "old")})
    by_name = with_pools(plain(), {"gpu": ("gpu", "old")})

    assert asked(by_number) == asked(by_name) == [{}, {"constraint": "pool=gpu|pool=old"}, {}]
    workload = with_pools(parsed({**JOBS[0], "partition": 2}, JOBS[1], JOBS[2]), {"2": ("gpu",), "fat": ("fat",)})
    assert asked(workload) == told(workload)
    assert [one.get("constraint") for one in asked(workload)] == ["(a100|k80)&pool=gpu", "pool=gpu", "pool=fat"]


def test_partitions_that_no_job_has_are_refused() -> None:
    """An unknown one is rejected with the closest name; so is a log without partitions."""
    with pytest.raises(TraceError, match=r"no job is in partition 'gpus'.*Did you mean 'gpu'"):
        with_pools(plain(), {"gpus": ("gpu",)})
    with pytest.raises(TraceError, match="no job has a partition"):
        with_pools(parsed(JOBS[0]), {"1": ("gpu",)})


@pytest.mark.parametrize(
    ("one", "other", "result"),
    [("", "", ""), ("a", "", "a"), ("", "b|c", "b|c"), ("a", "a", "a"), ("a|b", "c&d", "(a|b)&c&d")],
)
def test_two_constraints_are_combined(one: str, other: str, result: str) -> None:
    """Both apply; parentheses are added where needed."""
    assert both(one, other) == result


def test_merged_workloads_keep_requests() -> None:
    """Jobs of a workload without requests still have none."""
    merged = merge([with_requests(plain(2), per_node=np.array([2, -1])), plain(1)])

    assert sorted(len(one) for one in asked(merged)) == [0, 0, 1]


def test_describe_counts_requests() -> None:
    """`describe` counts them in workloads with requests."""
    workload = parsed(*JOBS)

    assert count_requests(workload) == {"constraint": 1, "units_per_node": 1, "whole_nodes": 1}
    assert dict(describe(workload))["asking for nodes"] == "constraint 1, units_per_node 1, whole_nodes 1"
    assert "asking for nodes" not in dict(describe(without_requests(workload)))

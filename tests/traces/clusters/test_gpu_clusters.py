"""The logs of GPU clusters: openb, Helios and Philly."""

import json
from pathlib import Path

import numpy as np
import pytest

from pipistrelle.protocol.resources.request import Request
from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.load import load

PODS = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
p0,12000,16384,1,1000,,LS,Running,0,500,10
p1,6000,12288,1,460,T4|P100,LS,Succeeded,100,900,100
p2,500,64,0,,,BE,Failed,200,300,
p3,x,64,0,,,BE,Failed,200,300,
"""
HELIOS = """\
job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
j1,u1,vcA,16,64,2,COMPLETED,2020-04-01 00:00:00,2020-04-01 00:01:00,2020-04-01 01:01:00,3600,60
j2,u2,vcB,3,9,2,FAILED,2020-04-01 00:05:00,,,0,0
"""
PHILLY = [
    {
        "status": "Pass",
        "vc": "v",
        "jobid": "application_1",
        "user": "u",
        "submitted_time": "2017-10-09 07:02:13",
        "attempts": [
            {
                "start_time": "2017-10-09 07:02:50",
                "end_time": "2017-10-09 07:03:00",
                "detail": [{"ip": "m1", "gpus": ["0"]}],
            },
            {
                "start_time": "2017-10-09 07:04:13",
                "end_time": "2017-10-09 08:04:13",
                "detail": [{"ip": "m1", "gpus": ["0", "1"]}, {"ip": "m2", "gpus": ["3", "4"]}],
            },
        ],
    },
    {"status": "Killed", "vc": "v", "jobid": "application_2", "user": "u", "submitted_time": "2017-10-09 07:02:13"},
]


def test_a_pod_takes_cores_memory_and_a_share_of_a_gpu(tmp_path: Path) -> None:
    """Times are from creation, scheduling and deletion; a bad row is left out and counted."""
    path = tmp_path / "pods.csv"
    path.write_text(PODS)

    workload = load(path)

    assert workload.ids == ["p0", "p1", "p2"]
    assert workload.requests == [
        Request(nodes=1, most_nodes=1, tasks=1, cores_per_task=12000, memory_per_node=16384, gpus_per_node=1),
        Request(
            nodes=1,
            most_nodes=1,
            tasks=1,
            cores_per_task=6000,
            memory_per_node=12288,
            gpus_per_node=1,
            gpu_share=460,
            gpu_models=("P100", "T4"),
        ),
        Request(nodes=1, most_nodes=1, tasks=1, cores_per_task=500, memory_per_node=64),
    ]
    assert workload.submit.tolist() == [0.0, 100.0, 200.0]
    assert workload.runtime.tolist() == [490.0, 800.0, -1.0]
    assert workload.left_out == {"record that cannot be read": 1}
    assert "line 5" in workload.faults[0]


def test_helios_jobs_have_gpus_and_cores_on_each_node(tmp_path: Path) -> None:
    """GPUs that the nodes do not divide belong to the whole job."""
    path = tmp_path / "cluster_log.csv"
    path.write_text(HELIOS)

    workload = load(path)

    assert workload.requests == [
        Request(nodes=2, most_nodes=2, tasks=64, tasks_per_node=32, gpus_per_node=8),
        Request(nodes=2, most_nodes=2, tasks=9, gpus=3),
    ]
    assert workload.measures["wait"].tolist() == [60.0, -1.0]
    assert workload.labels["queue"] == ["vcA", "vcB"]
    assert np.array_equal(workload.size, [2, 2])


def test_philly_jobs_count_their_last_attempt(tmp_path: Path) -> None:
    """A job that never started has unknown GPUs and is left out."""
    path = tmp_path / "cluster_job_log"
    path.write_text(json.dumps(PHILLY))

    workload = load(path)

    assert workload.requests == [Request(nodes=2, most_nodes=2, tasks=4, tasks_per_node=2, gpus_per_node=2)]
    assert workload.runtime.tolist() == [3600.0]
    assert workload.left_out == {"record that cannot be read": 1}


def test_a_list_of_nodes_is_no_workload(tmp_path: Path) -> None:
    """The message says what the file is and where it belongs."""
    path = tmp_path / "nodes.csv"
    path.write_text("sn,cpu_milli,memory_mib,gpu,model\nn1,1000,1,0,\n")

    with pytest.raises(TraceError, match=r"is a list of nodes.*--platform"):
        load(path)

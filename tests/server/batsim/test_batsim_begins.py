"""The first events that Batsim's clients receive, and the announcements of jobs."""

from typing import Any

import msgspec
import pytest

from pipistrelle.platforms.classes import JobClass
from pipistrelle.platforms.description import NodeGroup, Platform, Pool
from pipistrelle.platforms.naming.rule import TopologyRule
from pipistrelle.protocol.events import PlatformInfo

CONFIG = {
    "redis-enabled": False,
    "redis-hostname": "127.0.0.1",
    "redis-port": 6379,
    "redis-prefix": "default",
    "profiles-forwarded-on-submission": False,
    "dynamic-jobs-enabled": False,
    "dynamic-jobs-acknowledged": False,
    "profile-reuse-enabled": False,
    "sched-config": "",
    "forward-unknown-events": False,
}


def test_the_beginning_has_every_documented_field(play, job, machine) -> None:
    """Hosts with their props and their zones', storages numbered after them, workloads and profiles."""
    storage = (
        '<zone id="inner" routing="None"><prop id="rack" value="7"/>'
        '<host id="s0" speed="1f"><prop id="role" value="storage"/><prop id="size" value="9"/></host></zone>'
    )
    run = play([job("1", "d60")], {"w0!1": "0"}, hosts=machine(2, inside=storage, gpu="A"))
    begins = run.events("SIMULATION_BEGINS")
    host = {"state": "idle", "properties": {"gpu": "A", "role": ""}, "zone_properties": {}}
    assert begins == [
        {
            "nb_resources": 3,
            "nb_compute_resources": 2,
            "nb_storage_resources": 1,
            "allow_compute_sharing": False,
            "allow_storage_sharing": True,
            "config": CONFIG,
            "compute_resources": [{"id": 0, "name": "h0", **host}, {"id": 1, "name": "h1", **host}],
            "storage_resources": [
                {
                    "id": 2,
                    "name": "s0",
                    "state": "idle",
                    "properties": {"role": "storage", "size": "9"},
                    "zone_properties": {"rack": "7"},
                }
            ],
            "workloads": {"w0": "jobs0.json"},
            "profiles": {"w0": {"d60": {"type": "delay", "delay": 60.0}}},
        }
    ]
    assert list(run.notices[0]) == ["now", "events", "server"]
    assert all(list(notice) == ["now", "events"] for notice in run.notices[1:])


@pytest.mark.parametrize(
    ("options", "config"),
    [
        ({"forward_profiles": True}, {"profiles-forwarded-on-submission": True}),
        ({"profile_reuse": True}, {"profile-reuse-enabled": True}),
        ({"forward_unknown_events": True}, {"forward-unknown-events": True}),
        ({"sched_config": 'a "b"\n'}, {"sched-config": 'a "b"\n'}),
        ({"acknowledge_dynamic_jobs": True}, {"dynamic-jobs-acknowledged": True}),
    ],
)
def test_options_are_sent(play, job, options, config) -> None:
    """A scheduler learns from the configuration which features are enabled."""
    run = play([job("1", "d60")], {"w0!1": "0"}, **options)
    assert run.events("SIMULATION_BEGINS")[0]["config"] == CONFIG | config


def test_sharing_and_dynamic_jobs_are_sent(play, job, say) -> None:
    """Compute sharing has a field of its own; dynamic jobs are in the configuration."""
    run = play(
        [job("1", "d60")], {"w0!1": "0"}, {0: [say.notify("registration_finished")]},
        dynamic_jobs=True, compute_sharing=True,
    )  # fmt: skip
    begins = run.events("SIMULATION_BEGINS")[0]
    assert begins["allow_compute_sharing"]
    assert begins["config"] == CONFIG | {"dynamic-jobs-enabled": True}
    assert run.failure == ""


def test_a_platform_of_nodes_has_hosts_named_by_their_numbers(play, job) -> None:
    """A native platform serves, too, as long as no job computes."""
    platform = Platform(name="nodes", description="", pools=(Pool(name="a", nodes=2),))
    run = play([job("1", "d60", res=2)], {"w0!1": "0-1"}, hosts=platform)
    begins = run.events("SIMULATION_BEGINS")[0]
    assert [host["name"] for host in begins["compute_resources"]] == ["0", "1"]
    assert run.story[-1] == "60: simulation_ends"


def test_places_and_what_is_known_of_nodes_are_properties_of_hosts(play, job) -> None:
    """As texts, as Batsim's are; all by rule in the configuration, too, which our own client takes its machine from."""
    platform = Platform(
        name="m",
        pools=(
            Pool(name="a", nodes=2, properties={"nvlink": True, "cage": 1}),
            Pool(name="g", nodes=1, units_per_node=2, unit="gpu", names="x"),
        ),
        topology=TopologyRule(kind="mesh", shape=(3, 1), names="n[1-3]"),
        groups=(NodeGroup(nodes="0", node_class="new", mttf=5, age=2), NodeGroup(nodes="1", properties={"cage": 2})),
        classes=(JobClass(name="q"),),
    )
    run = play([job("1", "d60", res=2)], {"w0!1": "0-1"}, hosts=platform)
    begins = run.events("SIMULATION_BEGINS")[0]
    hosts = begins["compute_resources"]

    assert [host["name"] for host in hosts] == ["n1", "n2", "2", "3"]
    assert [host["properties"] for host in hosts] == [
        {
            "role": "",
            "nvlink": "true",
            "cage": "1",
            "pool": "a",
            "unit": "node",
            "node": "n1",
            "place": "0 0",
            "class": "new",
            "mttf": "5.0",
            "age": "2.0",
        },
        {"role": "", "nvlink": "true", "cage": "2", "pool": "a", "unit": "node", "node": "n2", "place": "1 0"},
        *[{"role": "", "pool": "g", "unit": "gpu", "node": "x", "place": "2 0"}] * 2,
    ]
    assert {tuple(host["zone_properties"].items()) for host in hosts} == {(("topology", "mesh"), ("shape", "3x1"))}
    told = msgspec.convert(begins["config"]["platform"], PlatformInfo)
    assert told == msgspec.structs.replace(platform.info, classes=())


def test_unused_profiles_are_sent_unchanged(play, job) -> None:
    """Every profile of the file is present, including parts of others and unknown fields."""
    profiles: dict[str, Any] = {
        "seq": {"type": "composed", "repeat": 2, "seq": ["a", "a"]},
        "a": {"type": "delay", "delay": 5, "colour": {"red": [1, 2.50]}},
        "idle": {"type": "delay", "delay": 1},
    }
    run = play([job("1", "seq")], {"w0!1": "0"}, profiles=profiles)
    assert run.events("SIMULATION_BEGINS")[0]["profiles"] == {"w0": profiles}
    assert run.story[-1] == "20: simulation_ends"


def test_a_job_is_announced_with_all_of_its_fields(play, job) -> None:
    """The file's own object, with the whole id; unknown fields remain."""
    mine = job("1", "d60", res=2, at=3.25, walltime=100, user="ann", extra={"deps": [{"id": "7"}], "w": None})
    run = play([mine], {"w0!1": "0-1"})
    assert run.events("JOB_SUBMITTED") == [{"job_id": "w0!1", "job": mine | {"id": "w0!1"}}]


def test_a_job_without_walltime_gets_none(play, job) -> None:
    """Neither an absent walltime nor -1 is changed."""
    run = play([job("1", "d60"), job("2", "d60", walltime=-1)], {"w0!1": "0", "w0!2": "1"})
    assert [data["job"].get("walltime") for data in run.events("JOB_SUBMITTED")] == [None, -1]
    assert run.job("w0!2")["requested_time"] == "-1.000000"


def test_profiles_are_forwarded_beside_the_job(play, job) -> None:
    """With the option each submission carries its profile's object, from its own workload."""
    profiles = {"p": {"type": "delay", "delay": 60, "note": "x"}}
    run = play(
        [job("1", "p")], {"w0!1": "0", "w1!1": "1"}, profiles=profiles, others=[[job("1", "p")]], forward_profiles=True
    )
    assert [(data["job_id"], data["profile"]) for data in run.events("JOB_SUBMITTED")] == [
        ("w0!1", profiles["p"]),
        ("w1!1", profiles["p"]),
    ]


def test_a_number_as_id_and_an_id_with_a_prefix(play, job) -> None:
    """Ids in the file may be numbers, or have a workload's name before them: it is replaced."""
    run = play([job("1", "d60") | {"id": 1}, job("old!2", "d60")], {"w0!1": "0", "w0!2": "1"})
    assert [data["job"]["id"] for data in run.events("JOB_SUBMITTED")] == ["w0!1", "w0!2"]
    assert run.job("w0!2")["final_state"] == "COMPLETED_SUCCESSFULLY"


def test_several_workloads_are_merged_by_time(play, job) -> None:
    """Jobs of one time come in the workloads' order; the end of submissions is announced once, after the last."""
    run = play(
        [job("1", "d60", at=5), job("2", "d60", at=5), job("3", "d60", at=9)],
        {"w0!1": "0", "w1!1": "1", "w1!2": "2", "w0!2": "3"},
        {65: []},
        others=[[job("1", "d60", at=1), job("2", "d60", at=5)], [job("1", "d60", at=9)]],
    )
    assert run.story[:5] == [
        "0: simulation_begins",
        "1: submitted w1!1",
        "5: submitted w0!1, submitted w0!2, submitted w1!2",
        "9: submitted w0!3, submitted w2!1",
        "9: notify no_more_static_job_to_submit",
    ]
    assert run.events("SIMULATION_BEGINS")[0]["workloads"] == {
        "w0": "jobs0.json",
        "w1": "jobs1.json",
        "w2": "jobs2.json",
    }
    assert run.failure.startswith("5: ")  # two jobs were never started


def test_many_jobs_of_several_workloads_keep_their_order(play, job) -> None:
    """Jobs are created in batches of some thousands; at the boundaries none is lost, doubled or swapped."""
    first = [job(f"{number:05d}", "d1", at=number // 2) for number in range(9000)]
    second = [job(f"{number:05d}", "d1", at=number) for number in range(4097)]
    run = play(first, {}, {0: [], 4499: []}, others=[second])
    ids = [data["job_id"] for data in run.events("JOB_SUBMITTED")]
    order = [(one["subtime"], 0, one["id"]) for one in first] + [(one["subtime"], 1, one["id"]) for one in second]
    assert ids == [f"w{workload}!{name}" for _, workload, name in sorted(order)]


@pytest.mark.parametrize("dynamic", [False, True])
def test_without_workload_the_run_is_over_at_once(play, say, dynamic) -> None:
    """No job at all: the beginning, the news that none is to come, and the end."""
    answers = {0: [say.notify("registration_finished")]} if dynamic else {}
    run = play([], {}, answers, dynamic_jobs=dynamic)
    assert run.story == [
        "0: simulation_begins",
        "0: notify no_more_static_job_to_submit",
        "0: simulation_ends",
    ]
    assert (run.failure, run.rows("jobs")) == ("", [])
    assert run.rows("schedule")[0]["nb_jobs"] == "0"

"""Warnings before a run of a maui.cfg that does not match its jobs or its machine."""

from pathlib import Path

import pytest

from pipistrelle.platforms.description import Platform, Pool, homogeneous
from pipistrelle.platforms.errors import PlatformError
from pipistrelle.runs.description.maui import maui_remarks
from pipistrelle.runs.description.policy import PolicySpec
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.traces.generator import generate
from pipistrelle.traces.workload import Workload

JOBS = generate(jobs=4, units=4, seed=1, load=0.5)


def with_labels(**labels: list[str]) -> Workload:
    """Return four jobs with labels."""
    return Workload(
        name="log",
        source="test",
        ids=JOBS.ids,
        submit=JOBS.submit,
        size=JOBS.size,
        walltime=JOBS.walltime,
        runtime=JOBS.runtime,
        labels=labels,
    )


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return the warnings of a configuration for jobs with users ann and bob, and queue fast."""
    monkeypatch.chdir(tmp_path)
    jobs = with_labels(user=["ann", "bob", "ann", ""], queue=["fast"] * 4)

    def remarks(text: str, platform: Platform | None = None, **more: str | None) -> list[str]:
        Path("m.cfg").write_text(text, encoding="utf-8")
        spec = RunSpec(**({"scheduler": "maui", "config": "m.cfg"} | more))
        return maui_remarks(spec, platform or homogeneous(4, "m"), jobs)

    return remarks


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("USERCFG[ann] MAXPROC=3\nCLASSCFG[DEFAULT] MAXJOB[USER]=2\nQOSCFG[DEFAULT] PRIORITY=1", []),
        ("USERCFG[eve] MAXPROC=3\nUSERCFG[ann] MAXPROC=3", ["no job of log has the user of USERCFG[eve]"]),
        ("CLASSCFG[slow] MAXNODE=3", ["no job of log has the queue of CLASSCFG[slow]"]),
        ("GROUPCFG[DEFAULT] MAXJOB=3", ["the jobs of log have no group: GROUPCFG[DEFAULT] has no effect"]),
        ("CLASSCFG[fast] MAXJOB[GROUP]=3", ["the jobs of log have no group: each limit per group has no effect"]),
        (
            "FSPOLICY TRUE\nFSWEIGHT 1\nFSACCOUNTWEIGHT 1\nACCOUNTCFG[DEFAULT] FSTARGET=100",
            ["the jobs of log have no account: ACCOUNTCFG[DEFAULT], FSACCOUNTWEIGHT have no effect"],
        ),
        ("FSWEIGHT 1\nFSACCOUNTWEIGHT 1", []),
        ("USERCFG[ann] QDEF=high\nQOSCFG[high] PRIORITY=3", []),
        ("QOSCFG[high] PRIORITY=3", ["the jobs of log have no qos: QOSCFG[high] has no effect"]),
    ],
)
def test_rules_for_names_missing_from_the_log_are_reported(said, text: str, expected: list[str]) -> None:
    """Once for each kind of credential, naming them: limits, targets, weights of fairshare."""
    assert said(text) == [f"m.cfg: {remark}" for remark in expected]


def test_of_the_order_alone_no_limits_are_said(said) -> None:
    """They are left out, and so are standing reservations and their hosts."""
    text = "CLASSCFG[fast] MAXJOB[GROUP]=3\nSRCFG[a] HOSTLIST=n1"

    assert said(text, scheduler="easy", order="maui") == []
    assert said("", scheduler="easy") == []


def test_file_of_a_preset_is_checked_too(said) -> None:
    """With its warnings, each only once; a scheduler named on the command line takes its place."""
    Path("own.cfg").write_text("RMPOLLINTERVAL 30\nUSERCFG[eve] PRIORITY=3", encoding="utf-8")
    Path("p.toml").write_text('order = "maui"\n[order-options]\nconfig = "own.cfg"', encoding="utf-8")
    preset = {"scheduler": "p.toml", "config": None}

    assert [remark.partition(": parameter RMPOLL")[0] for remark in said("", **preset)] == [
        "own.cfg:1",
        "own.cfg: no job of log has the user of USERCFG[eve]",
    ]
    assert said("", **(preset | {"order": "fcfs"})) == []
    named = said("USERCFG[tom] PRIORITY=3", **(preset | {"config": "m.cfg"}))
    assert named == ["m.cfg: no job of log has the user of USERCFG[tom]"]
    assert PolicySpec(scheduler="p.toml", config="m.cfg").make_policy(warn=False).name == "p"


def test_missing_hosts_are_an_error_before_the_run(said) -> None:
    """The warning has file and line; existing names have none."""
    named = Platform(name="m", pools=(Pool(name="p", nodes=4, names="n[1-4]"),))

    assert said("SRCFG[a] HOSTLIST=n[1-2]", named) == []
    with pytest.raises(PlatformError, match=r"^m\.cfg:2, SRCFG\[a\] HOSTLIST: no node has this name: found 'n5'"):
        said("\nSRCFG[a] HOSTLIST=n5", named)


def test_strict_is_the_default_and_lenient_is_kept() -> None:
    """As words of a command line, as which a child's are written."""
    assert PolicySpec(scheduler="maui", config="m.cfg").options == ["--config", "m.cfg"]
    assert PolicySpec(scheduler="maui", config="m.cfg", strict_config=False).options == [
        "--config",
        "m.cfg",
        "--lenient-config",
    ]

"""Illegal decisions: rejected at the same instant and without effect, or the end of the run with --strict."""

import json
from pathlib import Path

import pytest

CASES = json.loads((Path(__file__).resolve().parent.parent / "peers" / "illegal.json").read_text())


def test_each_illegal_decision_is_rejected_and_the_run_continues(shell):
    """Each is answered with DECISION_REJECTED, its code and index, at the same instant; the legal ones take effect."""
    outcome = shell.simulate("illegal", "all").ok()

    assert "NOT as expected" not in outcome.out
    assert "peer as expected at 20.0" in outcome.out
    assert "peer as expected at 500.0" in outcome.out
    assert "peer ended completed" in outcome.out
    jobs = {job[0]: job for job in shell.ended_jobs()}
    assert [jobs[name][8] for name in "1234"] == ["0.000000", "10.000000", "100.000000", "500.000000"]
    assert [jobs[name][-1] for name in "34"] == ["seen at 20", "seen at 500"]
    rejections = [line[4] for line in shell.decisions() if line[4] != "carried_out"]
    assert [case["code"] for at in (20, 500) for case in CASES.values() if case["at"] == at] == rejections


@pytest.mark.parametrize("name", CASES)
def test_with_strict_an_illegal_decision_ends_the_run(shell, name):
    """Exit code 3; user and scheduler get the same text, with place, code and reason; ended jobs are kept."""
    case = CASES[name]
    outcome = shell.simulate("illegal", name, options=["--strict"])
    outcome.failed(3, f"illegal decision ({case['code']}): ", "decision 2 (", "of the reply to notice ", "--strict")

    assert f"peer ended strict {outcome.messages[0].removeprefix('pipistrelle: ')}" in outcome.out
    assert "ended early: strict" in outcome.out
    assert {20: [], 500: ["2", "1", "3"]}[case["at"]] == [job[0] for job in shell.ended_jobs()]
    assert [case["code"]] == [line[4] for line in shell.decisions() if line[4] != "carried_out"]


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("workload-prefix", "duplicate_job"),
        ("no-prefix", "duplicate_job"),
        ("no-name", "duplicate_job"),
        ("other-id", "malformed"),
        ("too-large", "too_large"),
        ("no-units", "malformed"),
        ("negative-runtime", "malformed"),
        ("zero-walltime", "malformed"),
        ("no-runtime", "malformed"),
    ],
)
def test_an_illegal_registration_is_rejected(shell, kind, code):
    """It is rejected with its code, and the workload's jobs run as without it."""
    outcome = shell.simulate("illegal_dynamic", kind).ok()

    assert f"peer rejected {code} 0 0.0" in outcome.out
    if kind == "no-prefix":  # the second of two equal legal ones is rejected
        assert "peer rejected duplicate_job 2 0.0" in outcome.out
    assert {"1", "2", "3", "4"} == {job[0] for job in shell.ended_jobs() if job[1] == "w0"}

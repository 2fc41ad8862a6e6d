"""Runs that would never end: exit code 5, queued jobs named, scheduler notified, outputs kept."""

import pytest

FIRST_THREE = "first w0!1 (2 units), w0!2 (2 units), w0!3 (4 units) and 1 more"


@pytest.mark.parametrize(
    ("way", "fragments"),
    [
        ("nothing", ["simulated time 500.0", "the run stalled", "4 waiting, 0 running, 4 units free", FIRST_THREE]),
        ("deaf", ["simulated time 500.0", "the run stalled", FIRST_THREE]),
        ("late", ["simulated time 9000.0", "the run stalled", FIRST_THREE]),
        ("asleep", ["the run stalled", FIRST_THREE]),
        ("one-left", ["simulated time 500.0", "the run stalled", "1 waiting", "first w0!4 (1 units)"]),
        ("rejected", ["10,000 notices were sent at simulated time 0.0", "keeps repeating a rejected decision"]),
        ("call-now", ["10,000 notices were sent at simulated time 0.0", "keeps asking to be called at once"]),
        ("poll", ["10,000 notices had no effect", "idle", FIRST_THREE]),
    ],
)
def test_a_run_that_stalls_ends_and_says_why(shell, way, fragments):
    """The message names the queued jobs, the free units and what the scheduler omitted."""
    outcome = shell.simulate("stubborn", way)
    outcome.failed(5, *fragments)

    assert "peer ended stalled" in outcome.out
    assert fragments[0] in outcome.out
    assert "ended early: stalled" in outcome.out
    assert (["1", "2", "3"] if way == "one-left" else []) == [job[0] for job in shell.ended_jobs()]
    assert b'"stalled"' in shell.files("out")["out_summary.json"]


@pytest.mark.parametrize("more", [["--in-process"], [], ["--in-process", "--poll", "1h"], ["--dialect", "batsim"]])
def test_a_stall_under_standing_reservations_names_them(shell, more):
    """The message has their units and times, in every mode and dialect."""
    shell.write("maui.cfg", "SRCFG[keep] PERIOD=INFINITY\nSRCFG[noon] HOSTLIST=0-1 STARTTIME=43200 CLASSLIST=a")
    outcome = shell.run("run", "-w", "seven-jobs", "--scheduler", "maui", "--config", "maui.cfg", "-o", "out", *more)

    kept = "units are kept by SRCFG[keep] (units 0-3, from 0 s for ever), SRCFG[noon] (units 0-1, from"
    outcome.failed(5, "the run stalled", kept)
    assert outcome.err.count("SRCFG[keep]") == 1


@pytest.mark.slow
def test_a_stall_under_maintenance_names_it(shell):
    """Besides the units that the scheduler itself keeps."""
    shell.write("maui.cfg", "SRCFG[keep] PERIOD=INFINITY HOSTLIST=0-1")
    more = ("-w", "seven-jobs", "--maintenance", "@0 +1416min 2-3 daily", "--in-process", "-o", "out")
    outcome = shell.run("run", "--scheduler", "maui", "--config", "maui.cfg", *more)

    assert outcome.code == 5
    assert "units are kept by maintenance 'm1.5001' (units 2-3, from 4" in outcome.messages[-1]
    assert ", SRCFG[keep] (units 0-1, from 0 s for ever). The jobs need" in outcome.messages[-1]

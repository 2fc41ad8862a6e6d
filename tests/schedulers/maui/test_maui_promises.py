"""Guarantees of the Maui policy under any configuration and workload."""

from math import inf
from typing import Any

import pytest

from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.policy.windows import Window

CONFIGURATIONS = {
    "default": "",
    "none": "BACKFILLPOLICY NONE",
    "bestfit": "BACKFILLPOLICY BESTFIT\nBACKFILLMETRIC PROCSECONDS\nNODEALLOCATIONPOLICY FIRSTAVAILABLE",
    "greedy": "BACKFILLPOLICY GREEDY\nBACKFILLMETRIC SECONDS",
    "never": "RESERVATIONPOLICY NEVER",
    "highest": "RESERVATIONPOLICY HIGHEST\nRESERVATIONDEPTH 2\nXFACTORWEIGHT 100",
    "conservative": "RESERVATIONDEPTH 1000\nRESDEPTH 2000",
    "shallow": "BACKFILLDEPTH 3\nRESDEPTH 3\nBYPASSWEIGHT 5",
    "fairshare": "FSPOLICY DEDICATEDPS\nFSINTERVAL 50\nFSDEPTH 4\nFSDECAY 0.5\nFSWEIGHT 10\nFSUSERWEIGHT 3\n"
    "USERCFG[DEFAULT] FSTARGET=25\nFSACCOUNTWEIGHT 1\nACCOUNTCFG[x] FSTARGET=60+\nACCOUNTCFG[y] FSTARGET=10-",
    "limits": "USERCFG[DEFAULT] MAXPROC=8,16 MAXJOB=3\nCLASSCFG[fast] MAXJOB[USER]=1,2 MAXNODE=16\n"
    "ACCOUNTCFG[x] MAXPS=1700\nGROUPCFG[DEFAULT] MAXIJOB=3\nJOBPRIOACCRUALPOLICY FULLPOLICY",
    "limits without backfill": "BACKFILLPOLICY NONE\nUSERCFG[DEFAULT] MAXPROC=8,16\nUSERCFG[b] MAXIJOB=1",
    "stacks": "RESERVATIONDEPTH[0] 2\nRESERVATIONQOSLIST[0] high\nRESERVATIONDEPTH[1] 1\nRESERVATIONQOSLIST[1] DEFAULT",
    "standing": "SRCFG[s] HOSTLIST=12-15 STARTTIME=0:00:01:00 ENDTIME=0:00:04:00 CLASSLIST=fast TIMELIMIT=20",
    "caps": "FSPOLICY DEDICATEDPS\nFSINTERVAL 100\nFSDEPTH 3\nUSERCFG[a] FSTARGET=30%",
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", list(CONFIGURATIONS))
def test_every_job_runs_once_on_units_of_its_own(play, maui, random_jobs, check_machine, name: str, seed: int) -> None:
    """Under every configuration no job is lost, started twice or early, and no unit is shared."""
    jobs = random_jobs(seed)
    played = play(maui(CONFIGURATIONS[name]), 16, jobs)

    check_machine(played, jobs, 16)
    assert played.rejected.keys() <= {number for number, job in enumerate(jobs) if job.size * job.walltime > 1600}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("policy", ["FIRSTFIT", "BESTFIT", "GREEDY"])
def test_backfilling_never_delays_the_reservation(play, maui, random_jobs, policy: str, seed: int) -> None:
    """If priorities never change the order, a reserved job starts no later than its reservation."""
    jobs = random_jobs(seed)
    played = play(maui(f"BACKFILLPOLICY {policy}\nQUEUETIMEWEIGHT 6000"), 16, jobs)
    promised: dict[int, float] = {}

    for _, reserved in played.reservations:
        assert len(reserved) <= 1
        for number, time in reserved.items():
            assert time <= promised.get(number, inf)
            promised[number] = time
    assert len(promised) > 10
    assert all(played.start[number] <= time for number, time in promised.items())


@pytest.mark.parametrize("seed", range(4))
def test_highest_keeps_reservations_as_early_as_they_were(play, maui, random_jobs, seed: int) -> None:
    """Under HIGHEST a reservation stays with its job, whatever passes it by priority, and never moves back."""
    jobs = random_jobs(seed)
    played = play(maui("RESERVATIONPOLICY HIGHEST\nXFACTORWEIGHT 1000\nQUEUETIMEWEIGHT 0"), 16, jobs)
    promised: dict[int, float] = {}
    for now, reserved in played.reservations:
        for number, time in promised.items():
            assert played.start[number] <= time
            assert number in reserved or played.start[number] <= now
        promised |= reserved
    assert len(promised) > 10


LIMITS = """
USERCFG[DEFAULT]  MAXPROC=10 MAXJOB=3
USERCFG[b]        MAXNODE=4
CLASSCFG[fast]    MAXNODE=12 MAXJOBPERUSER=2 MAXNODE[USER]=5
ACCOUNTCFG[x]     MAXPS=900
GROUPCFG[h]       MAXWC=200
SYSCFG            MAXJOB=6
"""


@pytest.mark.parametrize("seed", range(8))
def test_limits_hold_at_every_instant(play, maui, random_jobs, check_machine, seed: int) -> None:
    """At no instant does a credential exceed its hard limit, recounted from the running jobs."""
    jobs = random_jobs(seed, 150)
    played = play(maui(LIMITS + CONFIGURATIONS["shallow"] * (seed % 2)), 16, jobs)
    checks = 0
    for now, running in played.running:
        mine: dict[Any, list[int]] = {"all": running}
        for number in running:
            job = jobs[number]
            for key in (job.user, f"account {job.account}", f"group {job.group}", job.queue, (job.queue, job.user)):
                mine.setdefault(key, []).append(number)
        for key, numbers in mine.items():
            units = sum(jobs[number].size for number in numbers)
            left = [(jobs[number].size, played.start[number] + jobs[number].walltime - now) for number in numbers]
            most = {"a": 10, "b": 4, "c": 10, "d": 10, "fast": 12, ("fast", key[1:] and key[1]): 5}.get(key, 16)
            assert units <= most, (now, key)
            assert len(numbers) <= (3 if key in ("a", "c", "d", "b") else 6), (now, key)
            assert key[0] != "fast" or len(numbers) <= 2, (now, key)
            assert key != "account x" or sum(size * time for size, time in left) <= 900 + 1e-6, now
            assert key != "group h" or sum(time for _, time in left) <= 200 + 1e-6, now
            checks += 1
    assert checks > 500
    check_machine(played, jobs, 16)


def test_units_out_of_service_are_not_used(play, maui, random_jobs, check_machine) -> None:
    """Jobs go around them, and reservations do, too."""
    jobs = random_jobs(5)
    out = NodeSet.parse("2-4 9")
    played = play(maui("RESERVATIONDEPTH 4\nDEFERTIME 30"), 16, jobs, [(100.0, out), (400.0, NodeSet.EMPTY)])

    check_machine(played, jobs, 16)
    begun = [number for number, start in played.start.items() if 100.0 <= start < 400.0]
    assert begun
    assert all(played.alloc[number].isdisjoint(out) for number in begun)


@pytest.mark.parametrize("name", ["default", "conservative", "highest", "bestfit"])
def test_the_machine_runs_down_before_announced_maintenance(play, maui, random_jobs, check_machine, name: str) -> None:
    """No job, by its walltime, runs into it, and reservations are made for the time behind it."""
    jobs = random_jobs(2)
    half = Window("half", 300.0, 500.0, NodeSet.interval(0, 7))
    whole = Window("whole", 900.0, 1000.0, NodeSet.interval(0, 15))
    played = play(maui(CONFIGURATIONS[name]), 16, jobs, windows=[whole, half])

    check_machine(played, jobs, 16)
    for window in (half, whole):
        for number, start in played.start.items():
            meets = start < window.end and start + jobs[number].walltime > window.begin
            assert not meets or played.alloc[number].isdisjoint(window.units)
    assert any(start == 1000.0 for start in played.start.values())


@pytest.mark.parametrize("filtered", [True, False])
@pytest.mark.parametrize("name", ["default", "shallow", "highest", "standing", "stacks"])
def test_the_server_accepts_every_decision(ask, play, maui, random_jobs, run_policy, name: str, filtered: bool) -> None:
    """Through the real engine, with and without the wake filter, the starts are the same and none is rejected."""
    jobs = random_jobs(7)
    rows = [(job.submit, job.size, job.takes, job.walltime) for job in jobs]
    run = run_policy(maui(CONFIGURATIONS[name]), 16, rows, filtered=filtered)
    played = play(maui(CONFIGURATIONS[name]), 16, [ask(*row[:2], row[3], row[2]) for row in rows])

    assert run.start_of == played.start
    assert {number: units for number, _, units in run.starts} == {n: str(units) for n, units in played.alloc.items()}


def test_one_policy_can_serve_several_simulations(play, maui, random_jobs) -> None:
    """Nothing of the previous run remains."""
    policy, jobs = maui(CONFIGURATIONS["fairshare"]), random_jobs(1)

    assert play(policy, 16, jobs).start == play(policy, 16, jobs).start

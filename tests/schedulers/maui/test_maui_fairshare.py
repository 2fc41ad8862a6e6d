"""Fairshare: usage by windows, decay, targets."""

from math import inf
from random import Random

import pytest

from pipistrelle.schedulers.maui.config.read import parse_maui_config
from pipistrelle.schedulers.maui.config.settings import Names
from pipistrelle.schedulers.maui.priority.credentials import Credentials
from pipistrelle.schedulers.maui.priority.fairshare import Fairshare

HOUR = 3600.0


def fairshare(text: str) -> tuple[Fairshare, Credentials]:
    """Return the fairshare of a configuration."""
    credentials = Credentials()
    return Fairshare(parse_maui_config(text)[0], credentials), credentials


def user(name: str, account: str | None = None) -> Names:
    """Return the names of a user's job."""
    return Names(name, None, account, None, "DEFAULT")


def test_usage_halves_every_window() -> None:
    """With FSDECAY 0.5 and windows of a day, 10 unit-hours on day 0 count 5 on day 1, 2.5 on day 2 and so on."""
    fair, credentials = fairshare("FSPOLICY DEDICATEDPS\nFSDEPTH 8\nFSINTERVAL 24:00:00\nFSDECAY 0.5")
    ann = credentials.code(user("ann"))
    fair.started(0.0, ann, 10)
    fair.ended(HOUR, ann, 10)

    used = [fair.usage("USER", "ann", day * 24 * HOUR) for day in range(1, 10)]
    assert used == [10 * HOUR / 2**day for day in range(1, 8)] + [0.0, 0.0]


def test_one_window_forgets_at_its_end() -> None:
    """FSDEPTH 1 is the current window alone, for any FSDECAY: as in Maui."""
    fair, credentials = fairshare("FSPOLICY DEDICATEDPS\nFSDEPTH 1\nFSINTERVAL 100\nFSDECAY 0.5")
    ann = credentials.code(user("ann"))
    fair.started(0.0, ann, 1)

    assert fair.usage("USER", "ann", 99.0) == 99.0
    assert fair.usage("USER", "ann", 130.0) == 30.0


def test_a_running_job_counts_as_time_goes_on_split_at_the_windows() -> None:
    """Whatever the instants at which one looks, the integrals are exact."""
    fair, credentials = fairshare("FSPOLICY UTILIZEDPS\nFSDEPTH 4\nFSINTERVAL 100\nFSDECAY 0.25")
    ann, bob = credentials.code(user("ann", "a")), credentials.code(user("bob", "a"))
    fair.started(50.0, ann, 4)
    fair.usage("USER", "ann", 77.0)
    fair.started(150.0, bob, 2)
    fair.ended(230.0, ann, 4)

    assert fair.usage("USER", "ann", 250.0) == 4 * 30 + 0.25 * 4 * 100 + 0.0625 * 4 * 50
    assert fair.usage("USER", "bob", 250.0) == 2 * 50 + 0.25 * 2 * 50
    assert fair.usage("ACCOUNT", "a", 250.0) == fair.total(250.0)
    assert fair.usage("USER", "eve", 250.0) == 0.0


@pytest.mark.parametrize("seed", range(3))
def test_usage_is_the_sum_over_jobs_and_windows(seed: int) -> None:
    """Fed event by event, it equals the closed form over all jobs."""
    chance = Random(seed)  # noqa: S311 - a test's dice
    fair, credentials = fairshare("FSPOLICY DEDICATEDPES\nFSDEPTH 3\nFSINTERVAL 64\nFSDECAY 0.5")
    jobs = [(float(chance.randrange(500)), float(chance.randrange(1, 200)), chance.randrange(1, 9)) for _ in range(40)]
    code = credentials.code(user("ann"))
    changes = [(begin, units) for begin, _, units in jobs] + [(begin + time, -units) for begin, time, units in jobs]
    now = 720.0
    for time, units in sorted(changes):
        if time <= now:
            (fair.started if units > 0 else fair.ended)(time, code, abs(units))

    def used(begin: float, end: float) -> float:
        return sum(units * max(0.0, min(job + time, end) - max(job, begin)) for job, time, units in jobs)

    window = now // 64
    assert fair.usage("USER", "ann", now) == sum(
        0.5**age * used((window - age) * 64, min(now, (window - age + 1) * 64)) for age in range(3)
    )


def test_the_manuals_example_of_deltas() -> None:
    """A target gives both signs, a floor (+) none above it, a ceiling (-) none below it, no target nothing."""
    fair, credentials = fairshare(
        "FSPOLICY DEDICATEDPS\nUSERCFG[A] FSTARGET=50.0\nACCOUNTCFG[C] FSTARGET=25\nQOSCFG[D] FSTARGET=10.0+\n"
        "USERCFG[DEFAULT] FSTARGET=40-\nUSERCFG[capped] FSTARGET=20%"
    )
    mine = credentials.code(Names("A", "B", "C", "E", "D"))
    other = credentials.code(Names("other", None, None, None, "DEFAULT"))
    idle = credentials.code(Names("idle", None, None, None, "DEFAULT"))
    capped = credentials.code(Names("capped", None, None, None, "DEFAULT"))
    fair.started(0.0, mine, 45)
    fair.started(0.0, other, 50)
    fair.started(0.0, capped, 5)
    fair.started(0.0, idle, 0)

    assert fair.factors("USER", 100.0).tolist() == [5.0, -10.0, 0.0, 0.0]
    assert fair.factors("GROUP", 100.0).tolist() == [0.0]
    assert fair.factors("ACCOUNT", 100.0).tolist() == [-20.0]
    assert fair.factors("QOS", 100.0).tolist() == [0.0, 0.0]
    room, cap = fair.room(capped, 100.0)
    assert room == pytest.approx(0.2 * 10000 - 500)
    assert cap == "USERCFG[capped] FSTARGET=20%"
    assert fair.room(mine, 100.0)[0] == inf
    assert fair.has_caps


def test_a_star_makes_the_distance_relative_to_the_target() -> None:
    """FSPOLICY DEDICATEDPS*: 1 - usage / target."""
    fair, credentials = fairshare("FSPOLICY DEDICATEDPS*\nUSERCFG[DEFAULT] FSTARGET=50")
    fair.started(0.0, credentials.code(user("ann")), 1)
    fair.started(0.0, credentials.code(user("bob")), 3)

    assert fair.factors("USER", 8.0).tolist() == [0.5, -0.5]


def test_without_policy_or_usage_nothing_is_counted() -> None:
    """FSPOLICY NONE, Maui's default, and the time before the first job: all factors are 0."""
    for text in ("USERCFG[DEFAULT] FSTARGET=50", "FSPOLICY DEDICATEDPS\nUSERCFG[DEFAULT] FSTARGET=50"):
        fair, credentials = fairshare(text)
        code = credentials.code(user("ann"))
        assert fair.factors("USER", 5.0).tolist() == [0.0]
        assert fair.room(code, 5.0)[0] == inf


def test_a_long_pause_empties_all_windows() -> None:
    """With nothing running, time may advance by centuries at once."""
    fair, credentials = fairshare("FSPOLICY DEDICATEDPS\nFSDEPTH 3\nFSINTERVAL 60")
    code = credentials.code(user("ann"))
    fair.started(0.0, code, 1)
    fair.ended(30.0, code, 1)

    assert fair.usage("USER", "ann", 100.0) == 30.0
    assert fair.usage("USER", "ann", 1e12) == 0.0
    fair.started(1e12, code, 2)
    assert fair.usage("USER", "ann", 1e12 + 10) == 20.0

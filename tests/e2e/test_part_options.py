"""Command-line options of the order pbs, the rule depth and polling."""

from typing import Any

import click
import pytest

from pipistrelle.cli.options.parts import part_options
from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.runs.description.policy import PolicySpec
from pipistrelle.schedulers.orders.pbs import PbsOptions, PbsOrder
from pipistrelle.schedulers.runtime.polling import Polling


@pytest.fixture
def read() -> Any:
    """Return a function from words to what a command makes of them."""
    seen: list[PolicySpec] = []

    @click.command()
    @click.option("--scheduler", default="easy")
    @part_options
    def command(**options: Any) -> None:
        seen.append(PolicySpec(**options))

    def spec_of(*words: str) -> PolicySpec:
        command.main(list(words), standalone_mode=False)
        return seen[-1]

    return spec_of


def test_what_is_not_given_is_not_set(read: Any) -> None:
    """Without options, the tables and the polling step are absent."""
    assert read() == PolicySpec()
    assert read().options == []


def test_every_option_reaches_the_policy(read: Any) -> None:
    """Options give the same settings as a preset's file, and can be written as words again."""
    words = ["--formula", "ncpus", "--queue-priority", "a=1", "--queue-priority", "b=c=-2.5"]
    words += ["--fairshare-entity", "group", "--fairshare-shares", "ada=3", "--unknown-shares", "4"]
    words += ["--fairshare-decay-time", "168:00:00", "--fairshare-decay-factor", "0.25"]
    words += ["--backfill-depth", "7", "--no-strict-ordering", "--poll", "5s"]
    spec = read("--scheduler", "pbs", *words)
    policy = spec.make_policy()

    assert isinstance(policy, Polling)
    assert policy.name == "pbs+poll=5s"
    assert isinstance(policy.order, PbsOrder)
    assert policy.order.options == PbsOptions(
        "ncpus", {"a": 1.0, "b=c": -2.5}, "group", {"ada": 3.0}, 4.0, "168:00:00", 0.25
    )
    assert (spec.backfill_depth, spec.strict_ordering) == (7, False)
    assert read("--scheduler", "pbs", *spec.options) == spec


def test_usage_may_never_fade(read: Any) -> None:
    """A decay time of 0 means the same as in a preset's file."""
    policy = read("--scheduler", "pbs", "--fairshare-decay-time", "0").make_policy()

    assert isinstance(policy.order, PbsOrder)
    assert policy.order.options.decay_time == "0"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--queue-priority", "qexp"], "'qexp' is not NAME=NUMBER with a finite number."),
        (["--queue-priority", "=1"], "'=1' is not NAME=NUMBER"),
        (["--queue-priority", "a=nan"], "'a=nan' is not NAME=NUMBER"),
        (["--fairshare-shares", "a=-1"], "with a finite number not below 0."),
        (["--poll", "5 parsecs"], "'5 parsecs' is not a length of time: expected one of ms, s, min"),
        (["--poll", "0:00:00"], "'0:00:00' is not above zero."),
        (["--poll", "1e300"], "'1e300' is longer than 1e+14 s."),
        (["--fairshare-decay-time", "1e300"], "'1e300' is longer than 1e+14 s."),
        (["--poll", ""], "'' is not a length of time: expected a number and a unit, as 24h"),
        (["--backfill-depth", "-1"], "-1 is not in the range x>=0"),
    ],
)
def test_a_wrong_value_is_a_usage_error(read: Any, words: list[str], says: str) -> None:
    """The message has the value and what was expected."""
    with pytest.raises(click.UsageError) as caught:
        read(*words)
    assert says in caught.value.format_message()


@pytest.mark.parametrize(
    ("words", "name", "says"),
    [
        (["--formula", "1 +"], "pbs", "--formula, column 4: a value is missing: expected a number, a name or '('"),
        (["--formula", "1"], "easy", "the order 'fcfs' has no options: expected order = bins or maui or pbs"),
        (["--backfill-depth", "2"], "easy", "the backfill 'easy' has no options: expected backfill = depth"),
        (["--unknown-shares", "nan"], "pbs", "expected shares not below 0, found nan for 'unknown-shares'."),
        (["--formula", "1"], "x.py:Y", "'x.py:Y' has no options"),
    ],
)
def test_an_option_that_does_not_fit_is_refused(read: Any, words: list[str], name: str, says: str) -> None:
    """One message of Pipistrelle names the option."""
    spec = read("--scheduler", name, *words)
    with pytest.raises(PipistrelleError) as caught:
        spec.make_policy()
    assert says in str(caught.value)
    assert caught.value.exit_code == 2

"""docs/how-to/batsim.md: Batsim's options, messages and profiles, as the code has them."""

import re

import click
import pytest

from pipistrelle.cli.run.batsim import REFUSED, command
from pipistrelle.protocol.batsim.codec import DECISION_TYPES
from pipistrelle.server.batsim.outputs import OUTPUT_NAMES
from pipistrelle.traces.batsim.profile_reader import PROFILE_TYPES

PAGE = "docs/how-to/batsim.md"
#: Batsim 4.2's own options, by its usage text
BATSIM = set(
    re.findall(
        r"--[\w-]+",
        """--platform --workload --workflow --workflow-start --events --master-host --add-role-to-hosts --energy
    --socket-endpoint --enable-redis --redis-hostname --redis-port --redis-prefix --export --disable-schedule-tracing
    --disable-machine-state-tracing --mmax --mmax-workload --forward-profiles-on-submission --enable-dynamic-jobs
    --acknowledge-dynamic-jobs --enable-profile-reuse --verbosity --quiet --workflow-jobs-limit
    --ignore-beyond-last-workflow --dump-execution-context --enable-compute-sharing --disable-storage-sharing --no-sched
    --sched-cfg --sched-cfg-file --sg-cfg --sg-log --forward-unknown-events --version --simgrid-version""",
    )
)
OPTIONS = {max(option.opts, key=len): option for option in command.params if isinstance(option, click.Option)}
del OPTIONS["--help-all"]  # every long help has it


def names(cell: str) -> list[str]:
    """Return the texts between backticks."""
    return re.findall(r"`([^`]+)`", cell)


@pytest.fixture
def rows(section, table):
    """Return a function from a heading to the rows of the tables below it."""
    return lambda heading: table(section(PAGE, heading))


def test_every_option_of_batsims_is_honoured_or_refused() -> None:
    """None is missing, and none is in both lists."""
    assert not OPTIONS.keys() & REFUSED.keys()
    assert OPTIONS.keys() | REFUSED.keys() >= BATSIM


def test_every_option_is_on_the_page(rows) -> None:
    """The table has the command's options, short forms and defaults, and says which are not Batsim's."""
    found = {names(row[0])[-1]: row for row in rows("Options")}

    assert list(found) == list(OPTIONS)
    for name, option in OPTIONS.items():
        cell, default, text = found[name]
        assert sorted(names(cell)) == sorted(option.opts), name
        assert text.startswith("ours:") == (name not in BATSIM), name
        if option.required:
            assert default == "required", name
        elif option.is_flag:
            assert default == "off", name
        elif isinstance(option.default, str | int | float):
            assert default.strip("`") == (
                option.default if isinstance(option.default, str) else f"{option.default:g}"
            ), name
        else:
            assert default == "", name


def test_every_refused_option_is_on_the_page_with_its_reason(rows) -> None:
    """The table is the one that the command has."""
    assert {names(row[0])[0]: row[1] for row in rows("Refused options")} == REFUSED


def test_every_decision_is_on_the_page(rows) -> None:
    """The second table of messages has the types that the code reads, in their order."""
    found = [names(row[0])[0] for row in rows("Messages")]

    assert tuple(found[-len(DECISION_TYPES) :]) == DECISION_TYPES


def test_every_profile_is_on_the_page(rows) -> None:
    """The table of profiles has the types that the code simulates."""
    assert tuple(names(row[0])[0] for row in rows("Profiles")) == PROFILE_TYPES


def test_every_output_is_on_the_page(rows) -> None:
    """The table of outputs has the files that a run may write."""
    assert {names(row[0])[0] for row in rows("Outputs")} == {f"PREFIX{name}" for name in OUTPUT_NAMES}

"""``pipistrelle failures yield``: tables and JSON, simulations, and errors."""

import json

import click
import pytest

from pipistrelle.cli.inputs.yields import command
from pipistrelle.protocol.base.errors import PipistrelleError

PAPER = ("failures", "yield", "--nodes", "22500", "--mtbf", "20y", "--dump", "2min")


def test_a_table_of_yields(shell):
    """It has a row per wait and application, and the largest waits for a target yield."""
    out = shell.run(*PAPER, "--waits", "1h,1d", "--target", "89%", "--target", "0.99").ok().out
    rows = [line.split() for line in out.splitlines()]

    assert out.startswith("22,500 nodes, a failure in 7.792 h; dump 120 s, read 120 s, every 2595 s of work\n")
    assert ["24", "h", "rigid", "259", "1.15", "2038", "h", "88.66"] in rows
    assert ["24", "h", "no", "spares", "0", "0.00", "7.792", "h", "22.24"] in rows
    assert ["89", "%", "moldable", "433", "33.54", "h"] in rows
    assert ["99", "%", "grid", "-", "none"] in rows


def test_json_with_simulations(shell):
    """Equal seeds give equal bytes; simulated yields agree with the closed forms; every option takes effect."""
    words = (*PAPER, "--waits", "10h", "--spares", "1%", "--simulate", "10", "--json")
    first = shell.run(*words, "--seed", "4").ok().out
    document = json.loads(first)

    assert shell.run(*words, "--seed", "4").ok().out == first
    assert [row["spares"] for row in document["yields"]] == [0, 225, 225, 225]
    lengths = [sum(document["mtbf"] / (22500 - down) for down in range(failures + 1)) for failures in (0, 225)]
    assert [row["length"] for row in document["yields"]] == pytest.approx([lengths[0], *[lengths[1]] * 3])
    exact = json.loads(shell.run(*words, "--exact", "--checkpoint", "daly", "--read", "0s").ok().out)
    assert (exact["form"], exact["read"], exact["checkpoint"]) == ("exact", 0.0, "daly")
    assert exact["interval"] < document["interval"]
    for row in (*document["yields"], *exact["yields"]):
        simulated = row["simulated"]
        assert abs(simulated["value"] - row["yield"]) < 0.002 + simulated["high"] - simulated["low"]


@pytest.mark.parametrize(
    ("words", "fragments"),
    [
        (
            (
                "failures",
                "yield",
            ),
            ["Missing option '--nodes'"],
        ),
        ((*PAPER, "--spares", "22500"), ["--spares: no node is left to work", "found 22,500 of 22,500"]),
    ],
)
def test_what_is_refused(shell, words, fragments):
    """One message and exit code 2, for each wrong option or value."""
    shell.run(*words).failed(2, *fragments)


@pytest.mark.parametrize(
    ("words", "fragments"),
    [
        ((*PAPER, "--mtbf", "0"), ["a mean time between failures is out of range"]),
        ((*PAPER, "--mtbf", "20 years"), ["a time of --mtbf has an unknown unit"]),
        ((*PAPER, "--mtbf", "0min"), ["a mean time between failures is out of range"]),
        ((*PAPER, "--mtbf", "inf"), ["a time of --mtbf cannot be read"]),
        ((*PAPER, "--waits", "1h,,2h"), ["a time of --waits cannot be read"]),
        ((*PAPER, "--waits", "0q"), ["a time of --waits has an unknown unit"]),
        ((*PAPER, "--waits", "1e13"), ["a wait is out of range"]),
        ((*PAPER, "--dump", "-1"), ["a time of --dump is below zero"]),
        ((*PAPER, "--target", "150%"), ["a target is not a yield: expected a number between 0 and 1, found 1.5"]),
        ((*PAPER, "--target", "high"), ["--target: a yield cannot be read", "found 'high'"]),
        ((*PAPER, "--target", "100%"), ["a target is not a yield"]),
        (
            ("failures", "yield", "--nodes", "1", "--mtbf", "1y", "--dump", "1", "--spares", "1"),
            ["expected 2 nodes or more"],
        ),
        ((*PAPER, "--spares", "0"), ["--spares: invalid number of spares"]),
        ((*PAPER, "--seed", "2"), ["--seed needs --simulate"]),
        ((*PAPER, "--simulate", "1"), ["--simulate"]),
        ((*PAPER, "--nodes", "0"), ["--nodes"]),
    ],
)
def test_what_is_said_of_wrong_values(words, fragments):
    """Exit code 2 and a message that names the option or the quantity."""
    with pytest.raises((click.ClickException, PipistrelleError)) as raised:
        command.main(words[2:], standalone_mode=False)
    assert raised.value.exit_code == 2
    error = raised.value
    text = error.format_message() if isinstance(error, click.ClickException) else str(error)
    for fragment in fragments:
        assert fragment in text


def test_no_wait_in_any_unit(shell):
    """A wait of 0 costs nothing, so no spares are best."""
    out = shell.run(*PAPER, "--waits", "0,0h,0.0min").ok().out
    assert [line.split()[3:] for line in out.splitlines() if "rigid" in line] == 3 * [
        ["0", "0.00", "7.792", "h", "90.75"]
    ]

"""``pipistrelle yield``: tables and JSON of yields, simulations beside them, and what can be wrong."""

import json

import pytest

PAPER = ("yield", "--nodes", "22500", "--mtbf", "20y", "--dump", "2min")


def test_a_table_of_yields(shell):
    """A row for each wait and application, and the largest waits for a target."""
    out = shell.run(*PAPER, "--waits", "1h,1d", "--target", "89%", "--target", "0.99").ok().out
    rows = [line.split() for line in out.splitlines()]

    assert out.startswith("22,500 nodes, a failure in 7.792 h; dump 120 s, read 120 s, every 2595 s of work\n")
    assert ["24", "h", "rigid", "259", "1.15", "88.66"] in rows
    assert ["24", "h", "no", "spares", "0", "0.00", "22.24"] in rows
    assert ["89", "%", "moldable", "433", "33.54", "h"] in rows
    assert ["99", "%", "grid", "-", "none"] in rows


def test_json_with_simulations(shell):
    """Equal seeds give equal bytes; the simulated yields hold to the closed ones; --spares and --exact are heeded."""
    words = (*PAPER, "--waits", "10h", "--spares", "1%", "--simulate", "40", "--json")
    first = shell.run(*words, "--seed", "4").ok().out
    document = json.loads(first)

    assert shell.run(*words, "--seed", "4").ok().out == first
    assert shell.run(*words).ok().out != first
    assert [row["spares"] for row in document["yields"]] == [0, 225, 225, 225]
    for row in document["yields"]:
        assert abs(row["simulated"]["value"] - row["yield"]) < 0.02
    exact = json.loads(shell.run(*words, "--exact", "--seed", "4", "--checkpoint", "daly", "--read", "0").ok().out)
    assert (exact["form"], exact["read"], exact["checkpoint"]) == ("exact", 0.0, "daly")
    assert exact["interval"] < document["interval"]


@pytest.mark.parametrize(
    ("words", "fragments"),
    [
        (("yield",), ["Missing option '--nodes'"]),
        ((*PAPER, "--mtbf", "0"), ["a mean time between failures is out of range"]),
        ((*PAPER, "--mtbf", "20 years"), ["a time of --mtbf has an unknown unit"]),
        ((*PAPER, "--waits", "1h,,2h"), ["a time of --waits cannot be read"]),
        ((*PAPER, "--dump", "-1"), ["a time of --dump cannot be read"]),
        ((*PAPER, "--target", "150%"), ["a target is no yield: expected a number between 0 and 1, found 1.5"]),
        ((*PAPER, "--target", "high"), ["--target: a yield cannot be read", "found 'high'"]),
        ((*PAPER, "--spares", "22500"), ["--spares: 22,500 spares leave none of 22,500 nodes to work"]),
        ((*PAPER, "--spares", "0"), ["--spares: spares cannot be read"]),
        ((*PAPER, "--seed", "2"), ["--seed without --simulate"]),
        ((*PAPER, "--simulate", "1"), ["--simulate"]),
        ((*PAPER, "--nodes", "0"), ["--nodes"]),
    ],
)
def test_what_is_refused(shell, words, fragments):
    """Each with one message that names the option or the quantity."""
    shell.run(*words).failed(2, *fragments)

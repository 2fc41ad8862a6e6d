"""``study summary``, ``compare``, ``break-even`` and ``plot`` from the command line, on an artificial table."""

import csv
import io
import json
import re

import pyarrow
import pytest
from click import ClickException
from click.testing import CliRunner
from pyarrow import parquet

from pipistrelle.cli.main import cli
from pipistrelle.protocol.base.errors import PipistrelleError

REPAIRS = {"1min": 60.0, "1d": 86400.0, "20d": 1728000.0}


@pytest.fixture
def trials(tmp_path, monkeypatch):
    """Return a function that writes a study's folder, ``study``, with so many replicas of each of 12 cells."""
    monkeypatch.chdir(tmp_path)

    def make(replicas=3):
        rows = [
            {
                "policy": policy,
                "reliability_factor": factor,
                "repair": repair,
                "repair_seconds": seconds,
                "replica": replica,
                "seed": replica,
                "mean_wait": (1000 * factor + seconds / 100) * (1 + 0.1 * replica) * (1 if policy == "fcfs" else 0.5),
                "jobs_1": 3,
                "mean_wait_1": 10.0 + replica,
            }
            for policy in ("fcfs", "easy")
            for factor in (1, 4)
            for repair, seconds in REPAIRS.items()
            for replica in range(replicas)
        ]
        (tmp_path / "study").mkdir()
        table = pyarrow.table({name: [row[name] for row in rows] for name in rows[0]})
        parquet.write_table(table, tmp_path / "study" / "trials.parquet")

    return make


def told(*words):
    """Return what a command prints."""
    done = CliRunner().invoke(cli, ["study", *words], standalone_mode=False)
    assert done.exception is None, done.exception
    return done.output


def test_from_the_command_line(shell, trials, tmp_path):
    """The group's commands end with exit code 2 if there is no study."""
    trials()

    assert "mean_wait by repair: means" in shell.run("study", "summary", tmp_path / "study").ok().out
    shell.run("study", "summary", "nowhere").failed(2, "there is no such folder")


@pytest.mark.parametrize(
    "words",
    [
        ("summary", "study"),
        ("summary", "study", "--quantile", "50%"),
        ("summary", "study", "--interval", "bootstrap"),
        ("compare", "study", "--axis", "policy"),
        ("compare", "study", "--axis", "policy", "--ratios"),
        ("compare", "study", "--axis", "repair", "--values", "1min,20d"),
        ("compare", "study", "--axis", "repair"),
        ("compare", "study", "--axis", "repair", "--ratios", "--test", "wilcoxon"),
        ("compare", "study", "--axis", "repair", "--test", "nemenyi", "--blocks", "cells", "--best", "more"),
        ("break-even", "study", "--where", "policy=easy", "--target", "1h", "--at", "1d"),
        ("break-even", "study", "--where", "policy=easy", "--where", "reliability-factor=4", "--target", "1h"),
    ],
)
def test_tables_json_and_csv(trials, words):
    """Each command prints its figures in three forms; tables fit into 80 columns."""
    trials()

    assert max(map(len, told(*words).splitlines())) <= 80
    rows = json.loads(told(*words, "--json"))
    assert rows
    assert len(list(csv.DictReader(io.StringIO(told(*words, "--csv"))))) == len(rows)
    latex = told(*words, "--latex")
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{table}") >= 1
    body = [line for line in latex.splitlines() if not line.startswith("%")]
    assert all(line.count("&") in (body[5].count("&"), 0) for line in body[5 : body.index(r"\bottomrule")])


def test_figures_are_those_of_the_table(trials):
    """If waits are halved in each replica, the mean ratio is a half, with an interval of length 0."""
    trials()
    rows = json.loads(told("compare", "study", "--axis", "policy", "--where", "repair=24h", "--json"))

    assert [row["reliability_factor"] for row in rows] == [1, 4]
    assert rows[0]["ratio_of_means"]["value"] == pytest.approx(0.5)
    assert rows[0]["difference"]["value"] == pytest.approx(-0.5 * 1864 * 1.1)


def test_all_pairs_and_a_ranking(trials):
    """Longer repairs wait longer in every replica of every cell; a common letter means that ranks do not differ."""
    trials()
    rows = json.loads(told("compare", "study", "--axis", "repair", "--json"))
    ranks = [row for row in rows if row["table"] == "ranks"]
    pairs = [row for row in rows if row["table"] == "pairs"]

    assert [(row["repair"], row["mean_rank"], row["best_in"]) for row in ranks] == [
        ("1min", 1.0, 12),
        ("1d", 2.0, 0),
        ("20d", 3.0, 0),
    ]
    assert len(pairs) == 3 * 4
    assert {(row["a"], row["b"]) for row in pairs} == {("1min", "1d"), ("1min", "20d"), ("1d", "20d")}
    assert all(row["p_holm"] >= row["p"] for row in pairs)
    text = told("compare", "study", "--axis", "repair")
    assert "mean_wait: ranks of repair in 12 blocks (replicas), less is better" in text
    assert "Friedman's chi-squared(2) = 24, p = 6.1e-06" in text


def test_trials_without_a_figure_are_marked_and_their_cause_is_named(trials, tmp_path):
    """A mean over the survivors has a mark, the number of trials, and the cause below the table, in every table."""
    trials(8)
    path = tmp_path / "study" / "trials.parquet"
    columns = parquet.read_table(path).to_pydict()
    lost = [
        policy == "fcfs" and replica > 4 for policy, replica in zip(columns["policy"], columns["replica"], strict=True)
    ]
    columns["mean_wait"] = [None if gone else wait for wait, gone in zip(columns["mean_wait"], lost, strict=True)]
    columns["reason"] = ["stalled" if gone else "completed" for gone in lost]
    columns["message"] = ["no event is left: 'w0!3' needs 9 units" if gone else "" for gone in lost]
    parquet.write_table(pyarrow.table(columns), path)

    summary = told("summary", "study")
    assert re.search(r"1min +5 of 8 +1,201\*", summary)
    assert "* 18 of 96 trials have no mean_wait" in summary
    assert (
        "  18 stalled: no event is left: 'w0!3' needs 9 units (fcfs 1 1min, fcfs 1 1d, fcfs 1 20d and 3 other"
        in summary
    )
    row = json.loads(told("summary", "study", "--json"))[0]
    assert (row["n"], row["missing"]) == (5, 3)
    assert row["missing_because"] == "3 stalled: no event is left: 'w0!3' needs 9 units"
    for words in (["--axis", "policy"], ["--axis", "repair"], ["--axis", "repair", "--test", "nemenyi"]):
        assert "of 96 trials have no mean_wait" in told("compare", "study", *words)
    assert "5 of 8" in told("compare", "study", "--axis", "policy")
    assert "2.00*" in told("compare", "study", "--axis", "repair")
    latex = told("summary", "study", "--latex")
    assert r"1,201\textsuperscript{*}" in latex
    assert r"\caption{mean wait (s) by repair: means" in latex


@pytest.mark.parametrize(
    ("words", "begins"),
    [
        (("--where", "policy=easy", "--target", "1h", "-o", "x.svg"), b"<?xml"),
        (("--where", "policy=easy", "--kind", "normalised", "-o", "x.png"), b"\x89PNG"),
        (("--font", "cm", "--size", "3.5x2.5", "-o", "x.pdf"), b"%PDF"),
        (("--kind", "bars", "--x", "policy", "--metric", "mean_wait", "--metric", "jobs_1", "-o", "x.svg"), b"<?xml"),
        (("--kind", "boxes", "--title", "", "--font", "stix", "--log-scale", "-o", "x.svg"), b"<?xml"),
        (("--kind", "ecdf", "--where", "repair=1d", "-o", "x.svg"), b"<?xml"),
        (
            (
                *("--kind", "sizes", "--axis", "policy"),
                *("--where", "repair=1d", "--where", "reliability-factor=4", "-o", "x.svg"),
            ),
            b"<?xml",
        ),
    ],
)
def test_pictures(trials, words, begins, tmp_path):
    """Curves, normalised curves and differences by size are written."""
    trials()

    assert told("plot", "study", *words) == f"picture in {words[-1]}\n"
    assert (tmp_path / words[-1]).read_bytes().startswith(begins)


def test_one_replica_has_no_interval(trials):
    """The value is printed, with a note."""
    trials(1)

    for words in (("summary",), ("compare", "--axis", "policy"), ("break-even", "--where", "policy=easy")):
        assert "one replica gives no interval" in told(words[0], "study", *words[1:])
    told("plot", "study", "--where", "policy=easy", "-o", "x.svg")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("summary", "nowhere"), "there is no such folder"),
        (("plot", "study", "--kind", "ecdf", "--log-scale", "-o", "x.svg"), "--log-scale does not go with --kind ecdf"),
        (("summary", "study", "--metric", "wait"), "the column 'wait' is missing"),
        (("summary", "study", "--where", "policy=maui"), "policy has no value 'maui'"),
        (("summary", "study", "--where", "policy"), "not AXIS=VALUE"),
        (("summary", "study", "--level", "2"), "not a share between 0 and 1"),
        (("summary", "study", "--quantile", "50%", "--interval", "bootstrap"), "--interval is for means"),
        (("compare", "study", "--axis", "repair", "--values", "1d"), "two or more values separated by commas"),
        (("compare", "study", "--axis", "repair", "--values", "1d,24h"), "--values names a value twice"),
        (("compare", "study", "--axis", "policy", "--blocks", "cells"), "needs at least three values"),
        (("compare", "study", "--axis", "policy", "--test", "nemenyi"), "needs at least three values"),
        (("compare", "study", "--axis", "seed_"), "the column 'seed_' is missing"),
        (("break-even", "study"), "other axes have more than one value: policy"),
        (("break-even", "study", "--target", "soon"), "a number, or a length of time"),
        (("break-even", "study", "--where", "policy=easy", "--where", "reliability_factor=1"), "give --target VALUE"),
        (("plot", "study", "-o", "x.jpg"), "pictures are PDF, SVG or PNG"),
        (("plot", "study", "--kind", "bars", "--target", "1h", "-o", "x.svg"), "--target does not go with --kind bars"),
        (("plot", "study", "--by", "repair", "--x", "repair", "-o", "x.svg"), "the same axis, repair"),
        (("plot", "study", "--kind", "bars", "--x", "repair", "--panels", "repair", "-o", "x.svg"), "the same axis"),
        (("plot", "study", "--size", "3.5", "-o", "x.svg"), "is not a size such as 3.5x2.5"),
        (("plot", "study", "--metric", "jobs_1", "--metric", "mean_wait", "-o", "x.svg"), "draws one --metric"),
        (
            ("plot", "study", "--kind", "ecdf", "--metric", "wait", "--where", "repair=1d", "-o", "x.svg"),
            'Add distributions = ["wait"]',
        ),
        (("plot", "study", "--kind", "sizes", "-o", "x.svg"), "--kind sizes needs --axis"),
        (("plot", "study", "--axis", "policy", "-o", "x.svg"), "--axis does not go with --kind curves"),
        (
            ("plot", "study", "--kind", "sizes", "--axis", "policy", "-o", "x.svg"),
            "other axes have more than one value",
        ),
    ],
)
def test_what_cannot_be_told(trials, words, message):
    """One error says what is wrong."""
    trials()
    done = CliRunner().invoke(cli, ["study", *words], standalone_mode=False)

    assert isinstance(done.exception, PipistrelleError | ClickException)
    said = done.exception.format_message() if isinstance(done.exception, ClickException) else str(done.exception)
    assert message in said

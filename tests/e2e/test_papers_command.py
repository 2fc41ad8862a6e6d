"""``pipistrelle study papers``: lists, pages, tables, missing logs, and errors."""

import csv
import json
import signal

import pytest


def test_the_list_of_entries(shell):
    """It lists all papers or one, also as JSON, without computing anything or creating a folder."""
    out = shell.run("study", "papers", "--list").ok().out
    entries = json.loads(shell.run("study", "papers", "004", "--list", "--json").ok().out)

    assert [line[:3] for line in out.splitlines() if not line.startswith(" ")] == ["000", "001", "002", "003", "004"]
    assert "  figure-13        run times of jobs of 4,096 nodes  (not computable)" in out.splitlines()
    assert [one["entry"] for one in entries if not one["computable"]] == [
        "figure-3",
        "figure-13",
        "figure-14",
        "what-if",
    ]
    assert {name for one in entries for name in one["needs"]} == {"Titan-GPU-lives-2013-2019.csv.xz"}
    assert not (shell.folder / "papers").exists()


def test_an_entry_alone(shell):
    """An entry has a page, JSON and CSV; finished parts are not computed again."""
    pytest.importorskip("matplotlib")
    pytest.importorskip("scipy")
    pytest.importorskip("pyarrow")
    words = ("study", "papers", "000", "--only", "figure-2", "--only", "table-1", "-o", "ours")
    first = shell.run(*words)
    again = shell.run(*words, "--json").ok()

    assert (first.code, [line.split() for line in first.out.splitlines()][2:]) == (
        0,
        [
            ["000", "table-1", "not", "computable", "the", "machine", "on", "which", "the", "simulations", "ran"],
            [
                "000",
                "figure-2",
                "reproduced",
                "2",
                "of",
                "2",
                "the",
                "seven",
                "jobs",
                "under",
                "the",
                "new",
                "EASY",
                "algorithm",
            ],
            ["ours/000-table-1-figure-2.html"],
            ["ours/000-table-1-figure-2.json"],
            ["ours/000-table-1-figure-2.csv"],
        ],
    )
    assert first.err.splitlines() == ["pipistrelle: 000/seven-jobs/easy-slices", "pipistrelle: 000/seven-jobs/easy"]
    assert again.err == ""
    document = json.loads((shell.folder / "ours" / "000-table-1-figure-2.json").read_text())
    assert json.loads(again.out) == document
    assert [one["verdict"] for one in document["papers"][0]["entries"]] == ["not computable", "reproduced"]
    with open(shell.folder / "ours" / "000-table-1-figure-2.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["agrees"] for row in rows if row["agrees"]] == ["yes", "yes"]
    assert (
        "<h2>the seven jobs under the new EASY algorithm"
        in (shell.folder / "ours" / "000-table-1-figure-2.html").read_text()
    )


def test_what_was_interrupted_goes_on(shell, wait_until):
    """After an interruption, finished parts are reused, and figures equal those of a complete run."""
    pytest.importorskip("matplotlib")
    words = ("study", "papers", "003", "--only", "work", "-o")
    first = shell.start(*words, "cut")
    wait_until(lambda: first.err.count("\n") >= 3)
    first.signal(signal.SIGINT)
    cut = first.finish()
    kept = [
        json.loads(line).get("part") for line in (shell.folder / "cut/kept/small/parts.jsonl").read_text().splitlines()
    ]
    again = shell.run(*words, "cut")
    whole = shell.run(*words, "whole")

    assert (cut.code, cut.err.splitlines()[-1]) == (130, "pipistrelle: interrupted")
    assert (again.code, whole.code) == (0, 0)
    assert len(kept) >= 3
    told = [line.removeprefix("pipistrelle: ") for line in whole.err.splitlines()]
    assert kept[1:] == told[: len(kept) - 1]
    assert again.err.splitlines() == whole.err.splitlines()[len(kept) - 1 :]
    for suffix in ("json", "csv", "html"):
        name = f"003-work.{suffix}"
        assert (shell.folder / "cut" / name).read_bytes() == (shell.folder / "whole" / name).read_bytes()


@pytest.mark.parametrize(
    ("words", "code", "fragments"),
    [
        (("005",), 2, ["there is no paper '005'", "000, 001, 002, 003, 004"]),
        (("1",), 2, ["there is no paper '1'"]),
        (("001", "--only", "table-4"), 2, ["paper 001 has no entry 'table-4'", "Did you mean"]),
        (("001", "003", "--only", "table-4.3"), 2, ["entries are chosen of one paper"]),
        (("--only", "table-4.3"), 2, ["entries are chosen of one paper", "found 5"]),
        (("--size", "medium"), 2, ["--size"]),
        (("--traces", "nowhere"), 2, ["--traces", "nowhere"]),
        (("004", "--only", "figure-1"), 2, ["entry figure-1 of paper 004 cannot be computed", "--traces DIR"]),
        (("004", "--only", "figure-1", "--traces", "."), 2, ["Titan-GPU-lives-2013-2019.csv.xz, which is not in ."]),
        (("000", "--only", "figure-2", "-o", "file"), 2, ["file"]),
    ],
)
def test_what_is_refused(shell, words, code, fragments):
    """One message and an exit code other than 0, before any computation."""
    shell.write("file", "")
    shell.run("study", "papers", *words).failed(code, *fragments)


@pytest.mark.parametrize(("module", "extra"), [("matplotlib", "report"), ("scipy", "study"), ("pyarrow", "study")])
def test_what_is_not_installed(shell, module, extra):
    """The message names the extra to install, before any computation."""
    shell.write(f"{module}.py", "raise ImportError")
    outcome = shell.run("study", "papers", "000", "--only", "figure-2")

    outcome.failed(2, f"the papers need {module}, which is not installed", f"pip install 'pipistrelle[{extra}]'")
    assert not (shell.folder / "papers").exists()

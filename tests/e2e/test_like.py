"""``workload generate --like``, ``workload model`` and ``workload compare`` from the command line."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from pipistrelle.cli.inputs.validate import command as validate
from pipistrelle.models.likeness.model import get, model_text
from pipistrelle.traces.load import load

ROOT = Path(__file__).resolve().parent.parent.parent
SMALL = ("workload", "generate", "--jobs", "400", "--machine-size", "64", "-o", "log.swf")


@pytest.mark.slow
def test_a_log_its_model_and_a_page(shell):
    """A model is fitted, jobs are drawn from it, a page compares both, and the model is saved."""
    shell.run(*SMALL).ok()
    done = shell.run(
        "workload", "generate", "--like", "log.swf", "--page", "page.html", "--seed", "2", "-o", "a.swf"
    ).ok()
    assert "log and jobs side by side in page.html" in done.out
    assert "400 jobs written to a.swf" in done.out
    page = (shell.folder / "page.html").read_text()
    assert "autocorrelation of submissions an hour" in page
    assert "<svg" in page

    shell.run("workload", "model", "log.swf", "-o", "model.toml").ok()
    shell.run("workload", "generate", "--like", "model.toml", "--seed", "2", "-o", "b.swf").ok()
    assert load(shell.folder / "a.swf").size.tolist() == load(shell.folder / "b.swf").size.tolist()

    shell.run("workload", "compare", "log.swf", "a.swf", "--page", "page.svg").ok()
    ElementTree.fromstring((shell.folder / "page.svg").read_text())  # noqa: S314 - our own
    figures = json.loads(shell.run("workload", "compare", "log.swf", "a.swf", "--json").ok().out)
    assert [one["jobs"] for one in figures["workloads"]] == [400, 400]
    assert all(0 <= value <= 1 for value in figures["distances"].values())


def test_the_table_is_narrow(shell):
    """The table of figures fits into 80 columns with names of a usual length."""
    shell.run(*SMALL).ok()
    lines = shell.run("workload", "compare", "log.swf", "demo").ok().out.splitlines()

    assert max(map(len, lines)) <= 80
    assert any("run time over requested time" in line for line in lines)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--like", "grizzly", "--classes", "intrepid-classes"], "--classes and --like exclude each other"),
        (["--serial", "50%"], "--serial needs --like"),
        (["--page", "x.svg"], "--page needs --like"),
        (["--like", "grizzly", "--page", "x.svg"], "'workload compare' takes any two workloads"),
        (["--like", "grizzly", "--page", "x.png"], "name an .html or .svg file"),
        (["--like", "grizzly", "--machine-size", "5"], "--machine-size needs a log in --like"),
        (["--like", "grizzly", "--serial", "120%"], "not a share between 0 and 1"),
        (["--like", "nowhere"], "there is no workload 'nowhere'"),
        (["--like", "nowhere.toml"], "there is no model 'nowhere.toml'"),
        (["--like", "seven-jobs"], "too few jobs to fit"),
        (["--like", "out.swf"], "out.swf"),
        (["--duration", "7d"], "--duration needs --classes or --like"),
    ],
)
def test_what_does_not_go_together(shell, words, message):
    """Conflicting options give one message and no output."""
    shell.run("workload", "generate", *words, "-o", "out.swf").failed(2, message)

    assert not (shell.folder / "out.swf").exists()


def test_models_classes_and_studies_are_known(tmp_path):
    """`validate` distinguishes them from platforms and runs, and describes them."""
    model, wrong = tmp_path / "model.toml", tmp_path / "wrong.toml"
    model.write_text(model_text(get("grizzly")))
    wrong.write_text(model.read_text().replace("repeat", "again"))
    files = (model, "docs/examples/classes.toml", "docs/examples/study.toml", wrong)
    done = CliRunner().invoke(validate, [str(ROOT / file) for file in files])

    for text in ("130,000 in 365d", "week: 2", "8 points", "unknown key 'again'"):
        assert text in done.output
    assert done.output.count(": valid") == 3


def test_a_model_is_a_toml_file(shell):
    """Any other suffix is refused."""
    shell.run("workload", "model", "demo", "-o", "model.json").failed(2, "name a .toml file")

"""docs/reference/outputs.md: every file, column and key, as the code writes them."""

import re
from typing import get_args

import msgspec
import pytest

from pipistrelle.cli.terminal.summary import timings
from pipistrelle.platforms.failures.outage import Outage, Outages
from pipistrelle.protocol.fields import EndReason, RejectionCode
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.run import RunOptions, run_in_process
from pipistrelle.runs.execution.run import run as run_spec
from pipistrelle.runs.inputs.named import load_platform
from pipistrelle.server.engine.jobs import State
from pipistrelle.server.outages.reliability import Reliability
from pipistrelle.server.outputs import attempt_recorder, node_book, recorder
from pipistrelle.server.outputs import once as outputs
from pipistrelle.server.outputs.metrics import Summary

PAGE = "docs/reference/outputs.md"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return the outputs' folder and the result of a run of the bundled workload."""
    folder = tmp_path_factory.mktemp("outputs")
    return folder, run_in_process("demo", "fcfs", options=RunOptions(out=folder))


@pytest.fixture(scope="module")
def failing(tmp_path_factory):
    """Return the outputs' folder of a run in which nodes fail."""
    folder = tmp_path_factory.mktemp("failing")
    machine = load_platform("tiny")
    outages = Outages.of([Outage(0, 100.0, 200.0)])
    run_in_process(
        "seven-jobs", "easy", platform=machine, reliability=Reliability(outages=outages), options=RunOptions(out=folder)
    )
    return folder


@pytest.fixture
def names(section, table):
    """Return a function from a section to the names in its table's first column, in order."""

    def first_column(heading: str) -> list[str]:
        return [row[0].strip("`") for row in table(section(PAGE, heading))]

    return first_column


@pytest.mark.parametrize(
    ("heading", "columns"),
    [
        ("out_jobs.csv", recorder.JOBS_COLUMNS),
        ("out_schedule.csv", outputs.SCHEDULE_COLUMNS),
        ("out_machine_states.csv", recorder.MACHINE_COLUMNS),
        ("out_decisions.csv", recorder.DECISION_COLUMNS),
        ("out_labels.csv", outputs.LABEL_COLUMNS),
    ],
)
def test_every_column_is_documented(heading, columns, names, run):
    """The columns on the page are those of the file's header, in its order."""
    folder, _ = run

    assert names(heading) == columns.split(",")
    assert (folder / heading).read_text(encoding="utf-8").partition("\n")[0] == columns


def test_every_column_of_the_queue_is_documented(names, tmp_path):
    """The columns of the file that `--queue-lengths` requests."""
    run_spec(RunSpec(workload=("seven-jobs",), queue_lengths=True), RunOptions(out=tmp_path))

    assert names("out_queue.csv") == (tmp_path / "out_queue.csv").read_text().partition("\n")[0].split(",")


@pytest.mark.parametrize(
    ("heading", "columns"),
    [
        ("out_attempts.csv", attempt_recorder.ATTEMPT_COLUMNS),
        ("out_nodes.csv", node_book.NODE_COLUMNS),
        ("out_outages.csv", node_book.OUTAGE_COLUMNS),
    ],
)
def test_every_column_of_failures_is_documented(heading, columns, names, failing):
    """The columns on the page are those of the file's header where nodes can fail."""
    assert names(heading) == columns.split(",")
    assert (failing / heading).read_text(encoding="utf-8").partition("\n")[0] == columns
    states = (failing / "out_machine_states.csv").read_text(encoding="utf-8").partition("\n")[0]
    assert states == f"{recorder.MACHINE_COLUMNS},{recorder.DOWN_COLUMN}"


def test_every_figure_of_failures_is_documented(section, failing):
    """The second table of the summary has the keys of its part on reliability."""
    keys = msgspec.json.decode((failing / "out_summary.json").read_bytes())["reliability"]
    page = section(PAGE, "out_summary.json").partition("`reliability` has these keys:")[2]

    assert re.findall(r"^\| `(\w+)` \|", page, flags=re.MULTILINE) == list(keys)


def test_every_key_is_documented(names, run):
    """The keys on the page are those of the JSON files, in their order."""
    folder, result = run

    keys = list(Summary.__struct_fields__)
    assert names("out_summary.json")[: len(keys)] == keys
    assert names("out_config.json") == list(msgspec.json.decode((folder / "out_config.json").read_bytes()))
    assert names("Wall-clock figures") == list(timings(result))


def test_every_file_is_documented(section, table, run, failing):
    """The table has exactly the files that a run writes; three of them only if nodes can fail."""
    folder, _ = run
    named = {re.sub(r"\[(.*)\]\(.*\)", r"\1", row[0]) for row in table(section(PAGE, "Outputs"))}

    named.remove("out_queue.csv")  # written only on request
    named.remove("out_takes.csv")  # written only on shared nodes
    assert named == {path.name for path in failing.iterdir()}
    assert named - {path.name for path in folder.iterdir()} == {"out_attempts.csv", "out_nodes.csv", "out_outages.csv"}


def test_every_value_of_a_closed_set_is_documented(section):
    """The page has all final states, reasons of the end and codes of rejections."""
    states = set(get_args(get_args(State)[0])) | set(get_args(get_args(State)[1])) - {"SUBMITTED", "RUNNING"}

    assert all(f"`{state}`" in section(PAGE, "out_jobs.csv") for state in states - {"SUBMITTED", "RUNNING"})
    assert all(f"`{reason}`" in section(PAGE, "out_summary.json") for reason in get_args(EndReason))
    listed = re.search(r"one of these codes:(.*?)\.", section(PAGE, "out_decisions.csv"), flags=re.DOTALL)
    assert listed is not None
    assert tuple(re.findall(r"`(\w+)`", listed[1])) == get_args(RejectionCode)


def test_computing_and_idle_time_add_up_to_the_machine(run):
    """time_computing + time_idle is the size of the machine times the makespan, as the page says."""
    folder, result = run
    header, line = (folder / "out_schedule.csv").read_text(encoding="utf-8").splitlines()
    row = dict(zip(header.split(","), line.split(","), strict=True))

    whole = int(row["nb_computing_machines"]) * result.summary.makespan
    assert float(row["time_computing"]) + float(row["time_idle"]) == whole

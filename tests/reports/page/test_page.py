"""The page as a file: its contents for any outputs, and outputs that cannot be shown."""

import hashlib
import json
import re
import shutil
from pathlib import Path

import pytest

from pipistrelle.platforms.failures.outage import Outage, Outages
from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.reports.explain.explanation import account
from pipistrelle.reports.explain.index import INDEX_FILE, open_index
from pipistrelle.reports.page.document import in_script
from pipistrelle.reports.page.page import page_of
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.run import RunOptions, run, run_in_process
from pipistrelle.runs.folders.tables import OutputTables
from pipistrelle.server.outages.reliability import Reliability
from pipistrelle.traces.generator import generate

THIRD_PARTY = Path(__file__).resolve().parents[3] / "reports" / "page" / "web" / "third_party"


@pytest.fixture(scope="module")
def easy(tmp_path_factory):
    """Return the outputs of a run of 600 jobs on nodes that fail."""
    folder = tmp_path_factory.mktemp("runs") / "easy"
    outages = Outages.of([Outage(node, 50_000.0 * (node + 1), 50_000.0 * (node + 1) + 3600.0) for node in range(30)])
    workload = generate(jobs=600, units=64, seed=3, load=1.0)
    run_in_process(workload, "easy", reliability=Reliability(outages=outages), options=RunOptions(out=folder))
    return folder


@pytest.fixture
def small_run(tmp_path):
    """Return the outputs of a run that include its command."""
    run(RunSpec(workload=("seven-jobs",)), RunOptions(out=tmp_path / "seven"))
    return tmp_path / "seven"


def facts_of(page):
    """Return the plain data of a page."""
    return json.loads(re.search(r'id="facts">(.*?)</script>', page, re.DOTALL)[1])


def test_equal_runs_have_equal_pages(easy):
    """Nothing in a page depends on when or how often it is made."""
    assert page_of([easy]) == page_of([easy])


def test_the_page_refers_to_nothing_outside(easy):
    """No address to load from, no handler in an attribute; the policy names each script and style by its digest."""
    page = page_of([easy])
    policy = re.search(r'Content-Security-Policy" content="(.*?)"', page)[1]

    assert policy.startswith("default-src 'none'")
    assert not re.search(r"<(link|img|iframe|base|object)\b|<\w+[^>]*\s(on\w+|src|style)=", page.split("<script>")[0])
    assert page.count("<script>") + page.count("<style>") == policy.count("'sha256-")


def test_summary_and_digests_are_those_of_the_run(easy):
    """The page carries the summary as it is, with the digests of the outputs."""
    assert facts_of(page_of([easy]))["runs"][0]["summary"] == json.loads((easy / "out_summary.json").read_text())


def test_a_script_in_data_ends_nothing():
    """For any text, the data block that holds it contains neither ``<`` nor ``>``."""
    text = "</script><script>alert(1)</script><!-- \u2028 &"

    assert not set("<>&\u2028") & set(in_script({"user": text}))
    assert json.loads(in_script({"user": text}))["user"] == text


def test_answers_are_those_of_explain(easy):
    """Why the worst-served jobs waited: word for word as explain says, from outputs alone and from a repeated run."""
    worst = facts_of(page_of([easy]))["runs"][0]["worst"]
    index = open_index(easy, repeat=False, wanted=lambda *_: True)

    assert worst["how"] == "outputs"
    assert len(worst["by_wait"]) == len(worst["by_slowdown"]) == 10
    for one in worst["jobs"]:
        explained = account(index, one["job"], None)[0]
        assert one["answer"] == explained.answer
        assert one["passed_by"] == len(explained.passed_by)
        assert one["holders"] == [[holder.job, holder.size, holder.held] for holder in explained.holders[:8]]


def test_a_run_without_summary_is_shown_as_far_as_it_went(easy, tmp_path):
    """Lines that were cut off are left out; jobs that had started run to the end of the outputs."""
    shutil.copytree(easy, tmp_path / "cut")
    (tmp_path / "cut" / "out_summary.json").unlink()
    for name in ("jobs", "decisions", "machine_states", "attempts", "outages"):
        path = tmp_path / "cut" / f"out_{name}.csv"
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    run = facts_of(page_of([tmp_path / "cut"]))["runs"][0]
    lines = len(OutputTables(tmp_path / "cut").columns("jobs")["job_id"])

    assert run["summary"] is None
    assert run["columns"]["rows"] > lines
    assert "RUNNING" in run["columns"]["state"]["names"]


def test_outputs_of_an_older_version_have_fewer_files(easy, tmp_path):
    """Without labels, nodes and the command, the rest is shown."""
    shutil.copytree(easy, tmp_path / "old")
    for name in ("labels.csv", "summary.json", "nodes.csv", "outages.csv", "attempts.csv"):
        (tmp_path / "old" / f"out_{name}").unlink()
    run = facts_of(page_of([tmp_path / "old"]))["runs"][0]

    assert run["columns"]["labels"] == {}
    assert run["breakdowns"] is None
    assert run["command"] is None


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("out_jobs.csv", None, "the folder has no out_jobs.csv"),
        ("out_config.json", None, "the folder has no out_config.json"),
        ("out_jobs.csv", b"job_id,workload_name\n1,w0\n", "the column submission_time is missing"),
        ("out_decisions.csv", b"time,decision,job_id,alloc,verdict,why\nsoon,,,,,\n", "outputs is not a number"),
        ("out_machine_states.csv", b"time,nb_idle\n\xff,1\n", "the file is not UTF-8 text"),
    ],
)
def test_invalid_run_is_rejected(easy, tmp_path, name, content, what):
    """A message names the file that is missing or wrong."""
    shutil.copytree(easy, tmp_path / "run")
    (tmp_path / "run" / "out_summary.json").unlink()
    (tmp_path / "run" / name).unlink()
    if content is not None:
        (tmp_path / "run" / name).write_bytes(content)

    with pytest.raises(PipistrelleError, match=what):
        page_of([tmp_path / "run"])


def test_no_such_run(tmp_path):
    """The message names a missing folder."""
    with pytest.raises(PipistrelleError, match="there is no such folder"):
        page_of([tmp_path / "none"])


def test_third_party_files_match_their_page():
    """Version, licence and digests of third-party code are included."""
    page = (THIRD_PARTY / "README.md").read_text()
    rows = re.findall(r"^\| (\S+) \|.*\| ([0-9a-f]{64}) \|$", page, re.MULTILINE)

    assert {name for name, _ in rows} | {"README.md"} == {path.name for path in THIRD_PARTY.iterdir()}
    for name, digest in rows:
        assert hashlib.sha256((THIRD_PARTY / name).read_bytes()).hexdigest() == digest


def test_a_kept_index_answers(small_run):
    """Explanations saved beside the outputs are used, and --explain creates them."""
    page_of([small_run], repeat=True)
    found = facts_of(page_of([small_run]))["runs"][0]["worst"]

    assert (small_run / INDEX_FILE).is_file()
    assert found["how"] == "repeated"

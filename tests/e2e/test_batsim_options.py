"""`pipistrelle-batsim`: Batsim 4's command line, and errors in it or in the files that it names."""

import json

import pytest

from pipistrelle.cli.run.batsim import REFUSED


@pytest.fixture
def files(shell, project_root):
    """Copy the manual's example into the test's folder, and return the options that name platform and workload."""
    examples = project_root / "docs" / "examples" / "batsim"
    for name in ("cluster.xml", "jobs.json"):
        shell.write(name, (examples / name).read_bytes())
    return ["-p", "cluster.xml", "-w", "jobs.json"]


@pytest.mark.parametrize("option", sorted(REFUSED))
def test_unsupported_options_are_rejected_with_a_reason(shell, files, option):
    """No option of Batsim's is ignored."""
    shell.batsim(*files, option, "x", "1").failed(2, f"{option} is not supported", REFUSED[option])


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["-W", "flow.xml"], "-W is not supported: workflows"),
        (["--WS", "flow.xml", "3"], "--WS is not supported: workflows"),
        (["--sg-cfg=a:b"], "--sg-cfg is not supported"),
        (["--simgrid"], "--simgrid is not supported"),
        (["--redis"], "No such option '--redis'"),
        (["--mtbf", "3"], "No such option '--mtbf'"),
        (["--sched-cfg", "a", "--sched-cfg-file", "b"], "exclude each other"),
        (["--enable-profile-reuse"], "--enable-profile-reuse requires --enable-dynamic-jobs"),
        (["-e", ""], "the path is empty"),
        (["-v", "loud"], "'quiet', 'network-only', 'information', 'debug'"),
        (["--mmax", "many"], "--mmax"),
        (["--bandwidth", "nan"], "--bandwidth"),
        (["--hello-timeout", "nan"], "--hello-timeout"),
        (["--no-sched", "--events", "x"], "--no-sched runs without a scheduler, and --events needs one"),
        (
            ["--no-sched", "-s", "tcp://localhost:1"],
            "--no-sched runs without a scheduler, and --socket-endpoint needs one",
        ),
        (["-r", "n0"], "expected HOST,HOST:ROLE, found 'n0'"),
        (["-r", "n0:storage:master"], "expected HOST,HOST:ROLE"),
        (["-r", "n0,:storage"], "expected HOST,HOST:ROLE"),
        (["-r", "n9:storage"], "unknown host 'n9'"),
        (["-r", "n0:disk"], "an unknown role"),
        (["-r", "n0:master"], "at most one master"),
        (["--mmax", "9"], "cannot be limited to 9 hosts: expected 1 to 4"),
        (["--sched-cfg-file", "nothing.cfg"], "nothing.cfg: cannot read the file"),
        (["-s", "localhost:28000"], "this is no endpoint"),
        (["-s", "tcp://*:28000"], "cannot connect to *"),
        (["-e", "cluster.xml/out"], "cannot write to the output folder"),
    ],
)
def test_wrong_options_are_one_message(shell, files, options, text):
    """A mistake on the command line is reported at once, in one line, before anything waits."""
    outcome = shell.batsim(*files, *options)

    outcome.failed(6 if text.startswith("cannot write") else 2, text)


@pytest.mark.parametrize(
    ("name", "content", "texts"),
    [
        ("cluster.xml", "<platform version='4.1'><zone id='z' routing='None'>\n<host id='h0'", ["cluster.xml, line 2"]),
        ("cluster.xml", 'name = "mine"\n', ["cluster.xml", "not XML"]),
        ("jobs.json", "{", ["jobs.json", "not valid JSON"]),
        ("jobs.json", '{"nb_res": 4, "jobs": [{"id": 1, "subtime": 0, "res": 1, "profile": "d9"}], "profiles": {}}',
         ["jobs.json", "'d9'", "does not exist"]),
        ("events.txt", '{"timestamp": 1, "type": "machine_available", "resources": "3-4"}',
         ["machine_available at 1.0 s", "expected hosts 0 to 3, found 3-4"]),
        ("events.txt", '{"timestamp": -1, "type": "machine_available", "resources": "3"}', ["events.txt, line 1"]),
    ],
)  # fmt: skip
def test_wrong_files_are_one_message(shell, files, name, content, texts):
    """The message says where in the file the mistake is."""
    shell.write("events.txt", "")
    shell.write(name, content)

    shell.batsim(*files, "--events", "events.txt").failed(2, *texts)


@pytest.mark.parametrize("option", ["-p", "-w", "--events"])
def test_files_that_are_not_there(shell, files, option):
    """A missing file is named."""
    shell.batsim(*files, option, "nowhere.txt").failed(2, "nowhere.txt")


def test_an_input_is_not_written_over(shell, files):
    """An output that is one of the inputs is refused before anything is written."""
    before = (shell.folder / "jobs.json").read_bytes()
    shell.write("x_jobs.csv", before)

    shell.batsim("-p", "cluster.xml", "-w", "x_jobs.csv", "-e", "x").failed(2, "x_jobs.csv is also read")

    assert (shell.folder / "x_jobs.csv").read_bytes() == before


def test_long_options_can_be_cut_short(shell, files):
    """The beginning of an option's name is enough, as with Batsim."""
    shell.batsim("--plat", "cluster.xml", "--workl=jobs.json", "--no-sch", "--exp=short", "--disable-m").ok()

    assert sorted(path.name for path in shell.folder.glob("short*")) == ["short_jobs.csv", "short_schedule.csv"]


def test_the_execution_context_can_be_asked_for(shell):
    """Tools that start Batsim and its scheduler get what they need, and nothing is read or simulated."""
    outcome = shell.batsim("-p", "nowhere.xml", "-e", "a/b", "-s", "ipc://x", "--dump-execution-context").ok()

    assert json.loads(outcome.out) == {
        "socket_endpoint": "ipc://x",
        "redis_enabled": False,
        "redis_hostname": "127.0.0.1",
        "redis_port": 6379,
        "redis_prefix": "default",
        "export_prefix": "a/b",
        "external_scheduler": True,
    }
    assert "Batsim 4" in shell.batsim("--version").ok().out

"""User errors in files, names and options: one message with place, rule and next step; exit code 2."""

import gzip
import json
import lzma

import pytest

GOOD = "1 0 -1 100 2 -1 -1 2 200 -1 1 1 1 -1 -1 -1 -1 -1\n"
LATER = "2 50 -1 100 2 -1 -1 2 200 -1 1 1 1 -1 -1 -1 -1 -1\n"


def field(number: int, value: str) -> bytes:
    """Return an SWF file whose second line has this value in a field, counted from 1."""
    words = LATER.split()
    words[number - 1] = value
    return f"{GOOD}{' '.join(words)}\n".encode()


#: (name, content, fragments of the message)
WORKLOADS = [
    ("empty.swf", b"", ["empty.swf", "is empty"]),
    ("comments.swf", b"; MaxProcs: 4\n", ["comments.swf"]),
    ("half.swf.gz", gzip.compress(GOOD.encode() * 4000)[:60], ["half.swf.gz", "truncated", "again"]),
    ("bad.swf.gz", gzip.compress(GOOD.encode(), mtime=0)[:-8] + b"\0" * 8, ["bad.swf.gz", "corrupt"]),
    ("half.swf.xz", lzma.compress(GOOD.encode() * 4000)[:80], ["half.swf.xz", "truncated"]),
    ("binary.swf", bytes(range(256)) * 8, ["binary.swf", "binary"]),
    ("latin.swf", GOOD.encode() + b"2 5\xe9 -1\n", ["latin.swf", "line 2"]),
    ("zip.swf", b"PK\x03\x04rest", ["zip.swf", "zip archive", "Unpack"]),
    ("few.swf", GOOD.encode() + b"2 50 -1 100\n", ["few.swf", "line 2", "18", "4"]),
    ("many.swf", GOOD.encode() + LATER.strip().encode() + b" 7 7\n", ["many.swf", "line 2", "18", "20"]),
    ("word.swf", field(4, "soon"), ["word.swf", "line 2", "field 4", "soon"]),
    ("nan.swf", field(4, "nan"), ["nan.swf", "line 2", "field 4", "nan"]),
    ("inf.swf", field(9, "inf"), ["inf.swf", "line 2", "field 9", "inf"]),
    ("overflow.swf", field(2, "1e999"), ["overflow.swf", "line 2", "field 2"]),
    ("long.swf", field(5, "9" * 400), ["long.swf", "line 2", "field 5"]),
    ("negative.swf", field(2, "-7"), ["negative.swf", "line 2", "field 2"]),
    ("twice.swf", GOOD.encode() * 2, ["twice.swf", "line 2", "1"]),
    ("prose.swf", b"Dear Sir or Madam,\n", ["prose.swf", "line 1"]),
    ("unsorted.swf", (LATER + GOOD).encode(), ["unsorted.swf", "line 2", "--sort"]),
    ("cut.json", b'{"nb_res": 4, "jobs": [', ["cut.json"]),
    ("empty.json", b"{}", ["empty.json"]),
    ("list.json", b"[1, 2]", ["list.json"]),
    ("deep.json", b'{"jobs": ' + b"[" * 100_000, ["deep.json"]),
    (
        "nan.json",
        b'{"nb_res": 4, "jobs": [{"id": 1, "subtime": NaN, "res": 1, "walltime": 5, "profile": "p"}], '
        b'"profiles": {"p": {"type": "delay", "delay": 3}}}',
        ["nan.json"],
    ),
    (
        "profile.json",
        b'{"nb_res": 4, "jobs": [{"id": 1, "subtime": 0, "res": 1, "walltime": 5, "profile": "q"}], '
        b'"profiles": {"p": {"type": "delay", "delay": 3}}}',
        ["profile.json", "q"],
    ),
]


@pytest.mark.parametrize(("name", "content", "fragments"), WORKLOADS, ids=[case[0] for case in WORKLOADS])
def test_a_workload_that_is_wrong_is_refused(shell, name, content, fragments):
    """The message names file, line, field and remedy; nothing is written."""
    shell.write(name, content)

    shell.run("run", "-w", name, "-p", "tiny", "--out", "out").failed(2, *fragments)
    assert not (shell.folder / "out").exists()


PLATFORMS = [
    ("empty.toml", b"", ["empty.toml", "name"]),
    ("broken.toml", b'name = "x"\n[[pools]\n', ["broken.toml", "not TOML", "line 2"]),
    ("twice.toml", b'name = "x"\nname = "y"\n', ["twice.toml", "not TOML"]),
    ("latin.toml", b'name = "caf\xe9"\n', ["latin.toml", "UTF-8", "byte 11"]),
    ("binary.toml", b"\0\1\2\3", ["binary.toml"]),
    ("key.toml", b'name = "x"\n[[pools]]\nname = "a"\nnods = 4\n', ["key.toml", "nods", "nodes"]),
    ("type.toml", b'name = "x"\n[[pools]]\nname = "a"\nnodes = "4"\n', ["type.toml", "pools[0].nodes"]),
    ("zero.toml", b'name = "x"\n[[pools]]\nname = "a"\nnodes = 0\n', ["zero.toml", "pools[0]"]),
    ("huge.toml", b'name = "x"\n[[pools]]\nname = "a"\nnodes = 99999999999999999999\n', ["huge.toml"]),
    ("nan.toml", b'name = "x"\n[[pools]]\nname = "a"\nnodes = nan\n', ["nan.toml", "pools[0].nodes"]),
    ("deep.toml", b"x = " + b"[" * 50_000, ["deep.toml"]),
]


@pytest.mark.parametrize(("name", "content", "fragments"), PLATFORMS, ids=[case[0] for case in PLATFORMS])
def test_a_platform_that_is_wrong_is_refused(shell, name, content, fragments):
    """The message names file, place and what is expected; nothing is written."""
    shell.write(name, content)

    shell.run("run", "-w", shell.small(), "-p", name, "--out", "out").failed(2, *fragments)
    assert not (shell.folder / "out").exists()


def test_validate_finds_what_is_wrong_with_each_file(shell):
    """One message per wrong file, in order; valid files are described."""
    cases = WORKLOADS + PLATFORMS
    for name, content, _ in cases:
        shell.write(name, content)
    outcome = shell.run("validate", shell.small(), *(case[0] for case in cases))

    assert outcome.code == 2
    assert "Traceback" not in outcome.err
    assert outcome.out.startswith(f"{shell.folder / 'small.swf'}: valid\n")
    for (_, _, fragments), message in zip(cases, outcome.messages, strict=True):
        for fragment in fragments:
            assert fragment in message


def test_an_unsorted_log_is_sorted_on_request(shell):
    """--sort gives the same result as the sorted file."""
    shell.write("unsorted.swf", f"; MaxProcs: 4\n{LATER}{GOOD}")
    shell.run("run", "-w", "unsorted.swf", "--sort", "--in-process", "--out", "out").ok()

    assert [job[0] for job in shell.ended_jobs()] == ["1", "2"]
    shell.run("validate", "unsorted.swf", "--sort").ok()


def test_jobs_that_cannot_run_are_dropped_and_counted(shell):
    """A log in which no job fits is no error; counts by reason say why nothing ran."""
    shell.swf("large.swf", [(1, 0, 10, 5, 20), (2, 1, 0, 1, 20), (3, 2, 10, 6, 20)])
    outcome = shell.run("run", "-w", "large.swf", "-p", "tiny", "--out", "out")

    assert (outcome.code, outcome.err) == (0, "WARNING: no job of large can run on tiny\n")
    assert "dropped: larger than the machine" in outcome.out
    assert "dropped: run time zero or missing" in outcome.out
    assert shell.ended_jobs() == []


LONG = "x" * 300
#: (arguments, exit code, fragments)
COMMANDS = [
    (["run", "-w", "missing.swf"], 2, ["there is no workload 'missing.swf'"]),
    (["run", "-w", "dmo"], 2, ["there is no workload 'dmo'", "Did you mean 'demo'?"]),
    (["run", "-w", LONG], 2, ["there is no workload"]),
    (["run", "-w", "."], 2, ["is a folder"]),
    (["run", "-p", "kth-sp"], 2, ["there is no platform 'kth-sp'", "Did you mean 'kth-sp2'?"]),
    (["run", "-p", LONG], 2, ["there is no platform"]),
    (["run", "-p", "."], 2, ["there is no platform '.'"]),
    (["run", "-w", "size.swf"], 2, ["does not give the size of its machine", "--platform"]),
    (["run", "--scheduler", "esay"], 2, ["there is no scheduler 'esay'", "Did you mean 'easy'?"]),
    (["run", "--scheduler", "esay", "--out", "o"], 2, ["there is no scheduler 'esay'", "Did you mean 'easy'?"]),
    (["run", "--scheduler"], 2, ["--scheduler", "requires an argument"]),
    (["run", "--scheduler", ""], 2, ["there is no scheduler ''"]),
    (["run", "--order", "sjff"], 2, ["there is no order 'sjff'", "Did you mean 'sjf'?"]),
    (["run", "--backfill", "esy"], 2, ["there is no backfill 'esy'", "Did you mean 'easy'?"]),
    (["run", "--placement", "lowst"], 2, ["there is no placement 'lowst'", "Did you mean 'lowest'?"]),
    (["run", "--strct"], 2, ["--strct", "--strict", "run --help"]),
    (["run", "--hello-timeout", "soon"], 2, ["--hello-timeout", "soon"]),
    (["run", "--hello-timeout", "0"], 2, ["--hello-timeout"]),
    (["run", "--decision-timeout", "nan"], 2, ["--decision-timeout", "nan is not a finite number"]),
    (["run", "--decision-timeout", "inf"], 2, ["--decision-timeout", "inf is not a finite number"]),
    (["run", "--in-process", "--endpoint", "tcp://127.0.0.1:*"], 2, ["--in-process", "--endpoint"]),
    (["run", "--in-process", "--hello-timeout", "9"], 2, ["--in-process", "--hello-timeout"]),
    (["run", "--in-process", "--scheduler", "prog", "{endpoint}"], 2, ["--in-process"]),
    (["run", "extra"], 2, ["extra"]),
    (["runn"], 2, ["there is no command 'runn'", "Did you mean 'run'?"]),
    (["show", "platfrom"], 2, ["there is no kind 'platfrom'", "Did you mean 'platform'?"]),
    (["schedule", "esay", "--connect", "tcp://127.0.0.1:1"], 2, ["there is no scheduler 'esay'", "'easy'"]),
    (["schedule", "easy"], 2, ["--connect"]),
    (["validate"], 2, ["FILE"]),
    (["validate", "missing.swf"], 2, ["missing.swf", "no such file"]),
    (["validate", "missing.toml"], 2, ["missing.toml", "No such file"]),
    (["validate", LONG], 2, ["xxx"]),
    (["workload", "generat"], 2, ["generat"]),
    (["workload", "generate"], 2, ["--output"]),
    (["workload", "generate", "--load", "nan", "-o", "x.swf"], 2, ["--load", "nan"]),
    (["workload", "generate", "--jobs", "0", "-o", "x.swf"], 2, ["--jobs"]),
    (["workload", "generate", "--machine-size", "9" * 30, "-o", "x.swf"], 2, ["units", "10,000,000"]),
    (["workload", "generate", "--jobs", "9" * 30, "-o", "x.swf"], 2, ["jobs", "10,000,000"]),
    (["workload", "generate", "--jobs", "9", "-o", "x.csv"], 2, ["x.csv", ".swf"]),
    (["workload", "convert", "demo", "x.parquet"], 2, ["x.parquet", ".swf"]),
    (["workload", "convert", "missing.swf", "x.json"], 2, ["missing.swf"]),
    (["serve", "--endpoint", "carrier-pigeon"], 2, ["carrier-pigeon", "this is no endpoint", "tcp://"]),
]


@pytest.mark.parametrize(("arguments", "code", "fragments"), COMMANDS, ids=[" ".join(c[0])[:50] for c in COMMANDS])
def test_a_command_line_that_is_wrong_is_refused(shell, arguments, code, fragments):
    """The message suggests the closest name or option; nothing is started."""
    shell.write("size.swf", GOOD)
    shell.run(*arguments).failed(code, *fragments)


def test_names_that_are_no_text_do_no_harm(shell):
    """A file name may have any bytes; messages stay one line."""
    name = "odd \udcff\n[/b]\x1b[2J.swf"
    shell.run("run", "-w", name).failed(2, "there is no workload", r"\n[/b]\x1b[2J")
    name = "odd \udcff"
    shell.write(name, shell.small().read_bytes())
    shell.run("run", "-p", "tiny", "-w", name).failed(2, "name is not UTF-8 text", "Rename")
    name = "odd\n[bold]\x1b[2J.swf"
    (shell.folder / name).write_bytes(shell.small().read_bytes())
    shell.run("run", "-p", "tiny", "-w", name).ok()
    shell.run("validate", name).ok()


@pytest.mark.parametrize("command", ["run", "serve"])
@pytest.mark.parametrize("option", ["--workload", "--platform"])
def test_a_second_workload_or_platform_is_refused(shell, command, option):
    """A run has one of each, so a second one is refused instead of ignored."""
    shell.run(command, option, "demo", option, "seven-jobs", "--out", "out").failed(2, option, "given 2 times")

    assert not (shell.folder / "out").exists()


def test_a_log_without_requested_times(shell):
    """The run says at once that no job has a requested time; its suggestion works."""
    lines = [f"{number} {number * 9} -1 100 2 -1 -1 2 -1 -1 1 1 1 -1 -1 -1 -1 -1\n" for number in (1, 2)]
    shell.write("par.swf", "; MaxProcs: 4\n" + "".join(lines) + GOOD.replace("1 0", "3 -1", 1).replace("200", "-1"))
    failed = shell.run("run", "-w", "par.swf", "--in-process")
    failed.failed(2)
    for fragment in ("par.swf", "no job has a requested time", "--transform 'scale --walltime 100%'"):
        assert fragment in failed.err
    assert "no job has a requested time" in shell.run("validate", "par.swf").ok().out
    done = shell.run("run", "-w", "par.swf", "--in-process", "--transform", "scale --walltime 100%", "-o", "out").ok()
    assert "submit time missing" in done.out
    summary = json.loads((shell.folder / "out" / "out_summary.json").read_text())
    assert (summary["jobs"], summary["dropped"]) == (2, {"submit time missing": 1})
    done = shell.run("workload", "convert", "par.swf", "par.json.gz", "--clean")
    assert "no jobs to write" in done.err
    assert "1 job left out: submit time missing" in shell.run("workload", "convert", "par.swf", "other.swf").ok().out

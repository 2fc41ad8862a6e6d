"""The commands that do not simulate, and what every command prints about itself."""

import contextlib
import os
import pty
import re
import subprocess
import sys
from importlib.metadata import version

import click
import pytest

from pipistrelle.cli.doors import GROUPS, Door
from pipistrelle.cli.main import cli
from pipistrelle.server.simulation import loop
from pipistrelle.traces.generator import generate
from pipistrelle.traces.load import save

TOP = {name: door for doors in GROUPS.values() for name, door in doors.items()}


def paths(doors, prefix=""):
    """Return {whole name: its line of the table} of commands and groups."""
    found: dict[str, Door] = {}
    for name, door in doors.items():
        found[f"{prefix}{name}"] = door
        found |= paths(door.doors or {}, f"{prefix}{name} ")
    return found


COMMANDS = paths(TOP)


def find(path):
    """Return the click command of this name."""
    command, context = cli, click.Context(cli)
    for word in path.split():
        command = command.get_command(context, word)
        assert command is not None
    return command


@pytest.fixture
def answer(monkeypatch, capsys):
    """Return a function that returns what a command prints when it runs in this process."""
    monkeypatch.setenv("COLUMNS", "200")

    def call(path, *words):
        code = find(path).main([*words], prog_name=f"pipistrelle {path}".strip(), standalone_mode=False)
        assert not code
        return capsys.readouterr().out

    return call


@pytest.mark.parametrize("path", ["", *COMMANDS])
def test_help_names_every_option(answer, path):
    """Each command explains itself, with every option and every argument."""
    out = answer(path, "--help-all" if getattr(find(path), "common", ()) else "--help")

    for parameter in find(path).params:
        for option in [*parameter.opts, *parameter.secondary_opts]:
            if isinstance(parameter, click.Option):
                assert re.search(rf"(^|[\s,/]){re.escape(option)}([\s,/]|$)", out, re.MULTILINE), option
                assert parameter.help, option
    assert f"Usage: pipistrelle {path}".strip() in out


def test_help_lists_commands_in_groups(shell):
    """`pipistrelle --help` shows at most 16 commands beside ``help``, in groups; also without --help."""
    out = shell.run("--help").ok().out

    assert len(TOP.keys() - {"help"}) <= 16
    places = [out.index(f"\n{group}:\n") for group in GROUPS]
    assert places == sorted(places)
    for name in TOP:
        assert re.search(rf"^  {name}  +[A-Z]", out, re.MULTILINE)
    assert shell.run("show", "-h").ok().out.startswith("Usage: pipistrelle show ")
    bare = shell.run()
    assert bare.code in (0, 2)
    assert "Usage: pipistrelle" in bare.out + bare.err


@pytest.mark.parametrize("path", COMMANDS)
def test_purposes_are_short(path):
    """Each is one sentence that fits a line, and no command is missing where the table says."""
    purpose = COMMANDS[path].purpose

    assert len(purpose) <= 66
    assert purpose.endswith(".")
    assert find(path).help


def test_an_old_name_leads_to_the_new_one(shell):
    """Former names are not aliases; the error names the new command or program."""
    shell.run("diff", "a", "b").failed(2, "there is no command 'diff'. Use 'compare'.")
    shell.run("outages", "show").failed(2, "Use 'failures'.")
    shell.run("batsim", "--help").failed(2, "Use 'pipistrelle-batsim'.")
    shell.run("check", "diff").failed(2, "there is no command 'diff'")


def test_the_list_of_commands_needs_no_command(shell):
    """`pipistrelle --help` imports neither arrays nor tables, nor any part of the simulator."""
    script = "import sys\nfrom pipistrelle.cli.main import main\nmain(['--help'])"
    outcome = shell.spawn(sys.executable, "-X", "importtime", "-c", script).finish()
    imported = {line.rpartition("|")[2].strip() for line in outcome.err.splitlines()}

    assert outcome.code == 0
    assert "pipistrelle.cli.main" in imported
    assert not imported & {"numpy", "rich", "loguru", "zmq", "pipistrelle.server", "pipistrelle.traces"}


def test_the_version_is_that_of_package_and_protocol(shell):
    """One line, which also says whether the hot modules are compiled."""
    compiled = "" if loop.__file__.endswith(".py") else ", compiled"
    assert shell.run("--version").ok().out == f"pipistrelle {version('pipistrelle')} (protocol 1{compiled})\n"


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("scheduler", ["fcfs", "easy", "easy-sjbf", "easy-slices", "easy_bf_fast", "conservative", "filler"]),
        ("platform", ["tiny", "kth-sp2", "grizzly", "theta", "curie"]),
        ("workload", ["demo", "seven-jobs"]),
    ],
)
def test_show_lists_what_is_bundled(answer, kind, names):
    """One line each: the name and what it is."""
    lines = answer("show", kind).splitlines()

    for name in names:
        assert any(re.match(rf"{name}  +\S", line) for line in lines)
    assert all(len(line.split()) > 2 for line in lines)


def test_validate_describes_each_kind_of_file(shell):
    """What a file is, and what is in it; nothing is complained of."""
    for name in ("w.swf.xz", "w.json"):
        save(generate(jobs=50, units=16, seed=1), shell.folder / name)
    shell.write("p.toml", 'name = "mine"\n[[pools]]\nname = "cpu"\nnodes = 3\n')
    out = shell.run("validate", "w.swf.xz", "w.json", "p.toml").ok().out

    assert re.findall(r"^(\S+): valid$", out, re.MULTILINE) == ["w.swf.xz", "w.json", "p.toml"]
    assert len(re.findall(r"jobs +50$", out, re.MULTILINE)) == 2
    assert re.search(r"format +SWF$", out, re.MULTILINE)
    assert re.search(r"format +Batsim JSON$", out, re.MULTILINE)
    assert re.search(r"platform +mine$", out, re.MULTILINE)


def test_validate_knows_tables_of_nodes(shell):
    """Alone, in CSV and TOML, with a date where one is needed; what no machine could have is refused by the row."""
    shell.write("n.csv", "name,class,mttf,installed,gpu\nn1,old,100h,2014-05-01,k20x\nn2,new,,2017-04-01,k20x\n")
    shell.write("n.toml", '[[nodes]]\nlocation = "c0n1"\nage = 3600\n[[nodes]]\nname = "n2"\nslot = 4\n')
    out = shell.run("validate", "n.csv,at=2017-05-01", "n.toml").ok().out
    lines = [" ".join(line.split()) for line in out.splitlines()]

    assert lines[:7] == [
        "n.csv,at=2017-05-01: valid",
        "table of nodes 2 rows",
        "found by name",
        "class old 1 node",
        "class new 1 node",
        "MTTF 100 to 100 h, of 1 node",
        "age 720 to 26304 h, of 2 nodes",
    ]
    assert lines[7:] == [
        "property gpu k20x: 2 nodes",
        "n.toml: valid",
        "table of nodes 2 rows",
        "found by location or name",
        "age 1 to 1 h, of 1 node",
        "property slot 4: 1 node",
    ]
    for text, *said in (
        ("name,mttf\na,1h\nb,0\n", "line 3: node 'b'.mttf", "above 0"),
        ("name,class\na,x\na,y\n", "n.csv, line 3", "two rows describe the node 'a'"),
        ("name,installed\na,2014-05-01\n", "needs the date of time 0", "FILE,at=DATE"),
        ("location,class\n,x\n", "a row names no node"),
        ("SN,location,insert,remove,duration,out,event\n", "n.csv,at=2017-05-01"),
    ):
        shell.write("n.csv", text)
        shell.run("validate", "n.csv").failed(2, *said)
    shell.run("validate", "absent.csv,at=2017-05-01").failed(2, "absent.csv")


def test_validate_shows_classes_and_failures(shell):
    """Limits are exact, and what limits nothing says so."""
    shell.write(
        "p.toml",
        'name = "mine"\n[[pools]]\nname = "cpu"\nnodes = 3\n[[pools]]\nname = "gpu"\nnodes = 1\n'
        '[[failures]]\nmodel = "exponential,mtbf=10h,pool=gpu"\nrepair = "1h"\n'
        '[[classes]]\nname = "short"\npools = ["cpu"]\nmax_nodes = 2\nmax_nodes_per_user = 1\nmax_nodes_per_job = 2\n'
        'max_walltime = 5400\npriority = -2.5\nprologue = 30\nepilogue = 1.5\n[[classes]]\nname = "any"\n',
    )
    lines = [line.strip() for line in shell.run("validate", "p.toml").ok().out.splitlines()]

    assert lines[-3:] == [
        "class short        pools cpu; at most 2 nodes in all; at most 1 node per user; at most 2 nodes per job; "
        "walltime up to 90 min; priority -2.5; prologue 30 s; epilogue 1.5 s",
        "class any          no limits",
        "failures           exponential,mtbf=10h,pool=gpu; repair 1h",
    ]


def test_validate_knows_what_is_bundled(shell, answer):
    """It describes everything bundled of that name; for an unknown name the message names the closest."""
    assert "class qlong        pools plain; at most 256 nodes in all; walltime up to 6 d" in answer(
        "validate", "salomon"
    )
    both = answer("validate", "demo")
    assert re.search(r"platform +demo$", both, re.MULTILINE)
    assert re.search(r"jobs +5,000$", both, re.MULTILINE)
    shell.run("validate", "salmon").failed(2, "'salmon'", "Did you mean 'salomon'?")
    shell.run("validate", "nothing-of-this-kind").failed(2, "'pipistrelle show' lists all bundled names")


def test_validate_accepts_every_name_that_show_lists(shell):
    """Platforms, schedulers, workloads, failure models, classes and models."""
    names = [line.split()[0] for line in shell.run("show").ok().out.splitlines() if line.startswith("  ")]
    told = shell.run("validate", *names).ok().out

    assert [line for line in told.splitlines() if line.endswith(": valid")] == [f"{name}: valid" for name in names]
    assert re.search(r"^  model +grizzly$", told, re.MULTILINE)
    assert re.search(r"^  classes +titan-month: 6$", told, re.MULTILINE)
    assert re.search(r"^  failure model +LANL's system 16", told, re.MULTILINE)
    assert re.search(r"^  backfill +easy$", told, re.MULTILINE)


def test_a_file_comes_before_a_schedulers_name(shell):
    """The same holds for ``pipistrelle run``."""
    shell.swf("easy", [(1, 0, 10, 2, 20)])

    assert "format" in shell.run("validate", "easy").ok().out


def test_validate_continues_after_a_wrong_file(shell):
    """Exit code 2 if any is wrong; the others are still described."""
    shell.write("bad.swf", "1 2 3\n")
    outcome = shell.run("validate", "bad.swf", shell.small())

    outcome.failed(2, "bad.swf", "line 1")
    assert "small.swf: valid" in outcome.out


def test_parts_of_a_preset_can_be_replaced(shell):
    """`schedule easy --order sjf` and `run` with the same parts make the same decisions, other than plain EASY."""
    save(generate(jobs=150, units=32, seed=7), shell.folder / "w.swf")
    server = shell.start("serve", "-w", "w.swf", "--out", "served")
    shell.run("schedule", "easy", "--order", "sjf", "--connect", "served").ok()
    server.finish().ok()
    shell.run("run", "-w", "w.swf", "--order", "sjf", "--out", "ran").ok()
    shell.run("run", "-w", "w.swf", "--in-process", "--out", "plain").ok()

    assert shell.files("served") == shell.files("ran")
    assert shell.ended_jobs("ran") != shell.ended_jobs("plain")
    assert b"easy+order=sjf" in shell.files("ran")["out_config.json"]


def test_parts_are_rejected_with_your_own_policy(shell):
    """Options that would have no effect are rejected."""
    shell.run("run", "--scheduler", "mine.py:Mine", "--order", "sjf").failed(2, "mine.py:Mine", "--order")


def test_timings_are_written_to_their_file_only(shell):
    """Wall-clock figures are in this file and in no other."""
    shell.run("run", "-p", "tiny", "-w", shell.small(), "--timings", "t.json", "--out", "out").ok()

    assert set(re.findall(r'"(\w+)":', (shell.folder / "t.json").read_text())) == {
        "round_trips",
        "wall_time",
        "waiting_for_scheduler",
    }


def test_a_progress_bar_can_be_asked_for(shell):
    """It is drawn on standard error and removed; standard output is the same with and without it."""
    plain = shell.run("run", "-p", "tiny", "-w", shell.small(), "--out", "out", "--in-process").ok()
    shown = shell.run("run", "-p", "tiny", "-w", shell.small(), "--out", "out", "--in-process", "--progress")

    assert shown.code == 0
    assert "4/4 jobs" in shown.err
    assert [line for line in shown.out.splitlines() if "wall" not in line and "waiting" not in line] == [
        line for line in plain.out.splitlines() if "wall" not in line and "waiting" not in line
    ]


def test_on_a_terminal_the_progress_is_shown(shell):
    """Simulated date, jobs done, queue length and events per second; the summary follows."""
    master, slave = pty.openpty()
    run = subprocess.Popen(
        [*shell.command, "run", "-p", "tiny", "-w", shell.many(), "--out", "out"],
        stdin=slave, stdout=slave, stderr=slave, cwd=shell.folder, env=shell.environment,
    )  # fmt: skip
    os.close(slave)
    shown = b""
    with contextlib.suppress(OSError):  # the terminal is gone when no process writes to it any more
        while block := os.read(master, 65536):
            shown += block
    os.close(master)

    assert run.wait() == 0
    text = shown.decode()
    for fragment in ("day 0", "/3,000 jobs", "queue ", "events/s", "outputs in out"):
        assert fragment in text


def test_the_bundled_example_runs_as_in_the_readme(shell):
    """`pipistrelle run` without arguments: two processes, a table, and a message that names the folder."""
    shell.forks = None  # as a user starts them: from nothing
    outcome = shell.run("run").ok()

    assert "5,000" in outcome.out
    assert "round trips" in outcome.out
    assert "outputs in pipistrelle-out/demo-easy-1" in outcome.out
    assert len(shell.files("pipistrelle-out/demo-easy-1")) == 7


def test_until_says_where_the_run_stopped_and_what_is_left(shell):
    """The user asked for that end, so the run did not end early."""
    out = shell.run("run", "--in-process", "--until", "10h", "--out", "out").ok().out

    assert "stopped at 36000 s (2026-01-05 10:00) as asked with --until: 7 jobs running and 3 queued" in out
    assert "time 0 is 2026-01-05 00:00, the end 2026-01-05 10:00" in out
    assert "ended early" not in out

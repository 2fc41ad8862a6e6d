"""What the command line prints about itself: sections, kinds of values, near misses, and the package's name."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

import pipistrelle
from pipistrelle.cli.main import cli
from pipistrelle.cli.options.names import pages
from pipistrelle.cli.run.batsim import command as batsim
from pipistrelle.protocol.fields import package_version

ALL = ["Inputs", "Machine", "Failures and maintenance", "Scheduler and its parts", "Connection", "Outputs"]


def commands(group: click.Group = cli, path: str = "pipistrelle") -> Iterator[tuple[str, click.Command]]:
    """Yield each command with its whole name, last the program `pipistrelle-batsim`."""
    for name in group.list_commands(click.Context(group)):
        found = group.get_command(click.Context(group), name)
        assert found is not None
        yield f"{path} {name}", found
        if isinstance(found, click.Group):
            yield from commands(found, f"{path} {name}")
    if group is cli:
        yield "pipistrelle-batsim", batsim


def named(name: str) -> tuple[str, click.Command]:
    """Return the whole name and the command of `pipistrelle NAME`, or the program `pipistrelle-batsim` for `batsim`."""
    whole = "pipistrelle-batsim" if name == "batsim" else f"pipistrelle {name}"
    return whole, dict(commands())[whole]


def help_of(name: str, command: click.Command) -> str:
    """Return what ``--help`` prints on a terminal of 80 columns."""
    context = click.Context(batsim if command is batsim else cli, info_name=name.partition(" ")[0], terminal_width=80)
    for word in name.split()[1:]:
        assert isinstance(context.command, click.Group)
        inner = context.command.get_command(context, word)
        assert inner is not None
        context = click.Context(inner, context, word)
    return command.get_help(context)


def all_help_of(name: str, command: click.Command) -> str:
    """Return what ``--help-all`` prints."""
    program = batsim if command is batsim else cli
    return CliRunner(env={"COLUMNS": "82"}).invoke(program, [*name.split()[1:], "--help-all"]).output


def titles(text: str) -> list[str]:
    """Return the headings of a help."""
    return [line.removesuffix(":") for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")]


@pytest.mark.parametrize(("name", "command"), list(commands()), ids=[name for name, _ in commands()])
def test_help_fits_a_screen(name: str, command: click.Command) -> None:
    """Help has at most 60 lines of 100 columns, and names no Python types; the rest is in ``--help-all``."""
    text = help_of(name, command)

    assert not [word for word in ("INTEGER", "FLOAT", "RANGE") if word in text]
    assert max(map(len, text.splitlines())) <= 100
    assert len(text.splitlines()) <= 60


def test_texts_of_options_are_short() -> None:
    """At most twelve words each, without defaults in prose: click shows those."""
    options = [param for _, command in commands() for param in command.params if isinstance(param, click.Option)]
    texts = {option.help or "" for option in options}

    assert [text for text in texts if not text.endswith(".") or "default" in text] == []
    assert [text for text in texts if len(re.sub(r"[({].*?[)}]", "", text).split()) > 12 and ":" not in text] == []


@pytest.mark.parametrize("name", ["run", "serve", "schedule", "resume", "check replay", "study steps", "batsim"])
def test_long_help_is_in_two_parts(name: str) -> None:
    """``--help`` shows at most ten common options and names ``--help-all``, which shows all in sections."""
    whole, command = named(name)
    text, everything = help_of(whole, command), all_help_of(whole, command)

    assert titles(text) == ["Common options"]
    assert len(getattr(command, "common", ())) <= 10
    assert "--help-all" in text
    for param in command.params:
        if isinstance(param, click.Option):
            assert all(option in everything for option in param.opts)
    assert max(map(len, everything.splitlines())) <= 100


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("run", ALL),
        (
            "serve",
            ALL,
        ),
        ("batsim", ["Inputs", "Machine", "Scheduler and its parts", "Connection", "Outputs"]),
        ("schedule", ["Scheduler and its parts", "Connection"]),
        ("workload convert", []),
        ("new scheduler", ["Scheduler and its parts", "Outputs"]),
    ],
)
def test_help_has_sections(name: str, expected: list[str]) -> None:
    """They have a fixed order; options without a section come last, and short helps have one list."""
    whole, command = named(name)
    text = all_help_of if getattr(command, "common", ()) else help_of
    found = titles(text(whole, command))

    assert found == ([*expected, "Other options"] if expected else ["Options"])


def test_a_schedulers_name_is_enough(shell):
    """``run fcfs`` is ``run --scheduler fcfs``; a file of that name is still a description."""
    words = ("-w", "seven-jobs", "--in-process")
    shell.run("run", "fcfs", *words, "-o", "a").ok()
    shell.run("run", *words, "--scheduler", "fcfs", "-o", "b").ok()
    assert shell.files("a") == shell.files("b")

    shell.run("run", "fcfs", "--scheduler", "easy").failed(2, "the scheduler is given twice, as 'fcfs'")
    shell.write("fcfs", 'scheduler = "filler"\nworkload = "seven-jobs"\n')
    assert "filler" in shell.run("run", "fcfs", "--in-process", "-o", "c").ok().out


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (("run", "--dialect", "batsin"), "batsim"),
        (("run", "--requeue", "nevr"), "never"),
        (("run", "esy"), "easy"),
        (("failures", "yield", "--checkpoint", "dali", "--nodes", "2", "--mtbf", "1y", "--dump", "1min"), "daly"),
        (("failures", "yeild"), "yield"),
        (("show", "platfrom"), "platform"),
        (("rum",), "run"),
        (("run", "--schedular", "easy"), "--scheduler"),
    ],
)
def test_a_misspelt_word_gets_a_suggestion(shell, words, near):
    """The message names the closest known word."""
    told = shell.run(*words).failed(2).err

    assert f"Did you mean '{near}'?" in told or f"Did you mean {near}" in told or f"({near}" in told, told


def test_the_package_runs_and_has_a_version():
    """``python -m pipistrelle`` is the command; ``pipistrelle.__version__`` is what ``--version`` prints."""
    words = [sys.executable, "-m", "pipistrelle", "--version"]
    told = subprocess.run(words, capture_output=True, text=True, check=True).stdout

    assert pipistrelle.__version__ == package_version()
    assert told.startswith(f"pipistrelle {pipistrelle.__version__} ")
    with pytest.raises(AttributeError, match="has no attribute 'versoin'"):
        pipistrelle.versoin  # noqa: B018 - it is looked up


def test_what_is_bundled_can_be_shown(shell):
    """Each is printed as its file: reading the output gives the same as the name."""
    for kind, name, suffix in (("platform", "theta", ".toml"), ("workload", "seven-jobs", ".swf")):
        shell.write(f"mine{suffix}", shell.run("show", kind, name).ok().out)
        shell.run("validate", f"mine{suffix}").ok()
    shell.write("mine.toml", shell.run("show", "scheduler", "titan-bins").ok().out)
    shell.run("run", "-w", "seven-jobs", "--scheduler", "mine.toml", "--in-process", "-o", "a").ok()
    shell.write("own.toml", shell.run("show", "failures", "lanl-20").ok().out)
    shell.run("failures", "generate", "--failures", "own.toml", "--nodes", "3", "--horizon", "1y", "-o", "o.csv").ok()

    shell.run("show", "platform", "thetta").failed(2, "no bundled platform 'thetta'. Did you mean 'theta'?")
    shell.run("show", "scheduler", "maui").failed(2, "the scheduler 'maui' is a program")
    shell.run("show", "platfrom", "theta").failed(2, "Did you mean 'platform'?")


def test_pages_come_with_the_package(shell):
    """Pages by their names; a command's help; for an unknown name, the closest."""
    listed = shell.run("help").ok().out
    for name, path in pages().items():
        assert re.search(rf"^ *{name} ", listed, re.MULTILINE)
        assert shell.run("help", name).ok().out.startswith(path.read_text(encoding="utf-8")[:200])
    assert shell.run("help", "workload", "scale").ok().out == shell.run("workload", "scale", "--help").ok().out

    shell.run("help", "mauy").failed(2, "neither a page nor a command 'mauy'. Did you mean 'maui'?")
    shell.run("help", "workload", "scael").failed(2, "'workload scael'")


def test_messages_name_pages_that_exist(project_root):
    """Every page that a message names comes with the package."""
    layers = ("protocol", "platforms", "traces", "server", "schedulers", "studies", "cli")
    texts = [path.read_text(encoding="utf-8") for layer in layers for path in (project_root / layer).rglob("*.py")]
    named = {name for text in texts for name in re.findall(r"pipistrelle help ([a-z][a-z-]*)", text)}

    assert len(named) > 6
    assert named - {"workload"} <= pages().keys()


def test_the_man_page_has_every_command_and_option(shell):
    """It is generated from the help; no line of it is an unknown request."""
    text = shell.run("help", "--man").ok().out
    for name, command in commands():
        assert f".B {name}\n".replace("-", "\\-") in text
        for option in command.params:
            assert all(long.replace("-", "\\-") in text for long in option.opts if long.startswith("--"))
    requests = {line.split()[0] for line in text.splitlines() if line.startswith(".")}
    assert requests == {".TH", ".SH", ".SS", ".B", ".PP", ".TP", ".nf", ".fi"}
    if shutil.which("man") is not None:
        shell.write("p.1", text)
        words = ["man", "--warnings", "-l", str(shell.folder / "p.1")]
        shown = subprocess.run(words, capture_output=True, text=True, check=True, env={"PATH": os.environ["PATH"]})
        assert shown.stderr == ""
        assert "PIPISTRELLE FAILURES FIT" in shown.stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("r", "run"),
        ("fail", "failures"),
        ("explain acc", "accuracy"),
        ("new sch", "scheduler"),
        ("run --in-pro", "--in-process"),
        ("run --help-a", "--help-all"),
        ("run -p th", "theta"),
        ("run -w sev", "seven-jobs"),
        ("run eas", "easy-sjbf"),
        ("run --backfill cons", "conservative"),
        ("run --failures lanl-2", "lanl-20"),
        ("schedule fil", "filler"),
        ("show platform k", "kth-sp2"),
        ("show pl", "platform"),
        ("help ma", "maui"),
        ("help fail", "failures"),
        ("help workload sc", "scale"),
        ("check scheduler eas", "easy-sjbf"),
        ("check scheduler -k no-", "no-walltime"),
        ("check cases -k easy-d", "easy-delays-the-third"),
        ("workload sc", "scale"),
    ],
)
@pytest.mark.parametrize("kind", ["bash", "zsh", "fish"])
def test_a_shell_completes_names(shell, kind, words, expected):
    """Commands, options and bundled names are completed as each shell asks for them."""
    begun = words.rpartition(" ")[2]
    shell.environment |= {
        "_PIPISTRELLE_COMPLETE": f"{kind}_complete",
        "COMP_WORDS": f"pipistrelle {words}",
        "COMP_CWORD": begun if kind == "fish" else str(len(words.split())),
    }
    lines = shell.run().ok().out.splitlines()

    if kind == "zsh":
        assert expected in lines
    else:
        assert f"plain,{expected}" in [line.partition("\t")[0] for line in lines]


@pytest.mark.parametrize("kind", ["bash", "zsh", "fish"])
def test_a_shell_completes_files(shell, kind):
    """Where a file is accepted, the shell completes its name."""
    shell.environment |= {
        "_PIPISTRELLE_COMPLETE": f"{kind}_complete",
        "COMP_WORDS": "pipistrelle validate mine",
        "COMP_CWORD": "mine" if kind == "fish" else "2",
    }

    assert "file" in re.split(r"[,\n]", shell.run().ok().out)
    shell.environment["_PIPISTRELLE_COMPLETE"] = f"{kind}_source"
    assert "pipistrelle" in shell.run().ok().out


@pytest.mark.parametrize("kind", ["bash", "zsh", "fish"])
def test_a_shell_completes_options_of_pipistrelle_batsim(shell, kind):
    """The program has its own completion, as it has its own name."""
    shell.environment |= {
        "_PIPISTRELLE_BATSIM_COMPLETE": f"{kind}_complete",
        "COMP_WORDS": "pipistrelle-batsim --no-s",
        "COMP_CWORD": "--no-s" if kind == "fish" else "1",
    }

    assert "--no-sched" in re.split(r"[,\t\n]", shell.batsim().ok().out)
    shell.environment["_PIPISTRELLE_BATSIM_COMPLETE"] = f"{kind}_source"
    assert "pipistrelle-batsim" in shell.batsim().ok().out

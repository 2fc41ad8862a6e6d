"""Peers that are slow, silent, dead, duplicated or early: runs end as the documentation says."""

import json
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "guarantees.md"
LIMIT = ("--decision-timeout", "1")
BEGINS = {"now": 0.0, "events": [{"timestamp": 0.0, "type": "SIMULATION_BEGINS", "data": {"nb_compute_resources": 4}}]}
JOB = {"id": "w0!1", "res": 2, "walltime": 60, "subtime": 5, "profile": "p"}
SUBMITTED = {
    "now": 5.0,
    "events": [{"timestamp": 5.0, "type": "JOB_SUBMITTED", "data": {"job_id": "w0!1", "job": JOB}}],
}
ENDS = {"now": 8.0, "events": [{"timestamp": 8.0, "type": "SIMULATION_ENDS", "data": {}}]}


def rows(heading: str) -> dict[str, list[str]]:
    """Return the table under a heading as {first cell: exit codes of the others}; a dash is no code."""
    text = PAGE.read_text().partition(f"\n### {heading}\n")[2].partition("\n##")[0]
    table: dict[str, list[str]] = {}
    for line in re.findall(r"^\| (.*) \|$", text, re.MULTILINE)[1:]:
        first, *cells = line.split(" | ")
        table[first] = [cell if cell == "–" else re.match(r"\d+", cell)[0] for cell in cells]  # type: ignore[index]
    return table


# -- schedulers -------------------------------------------------------------------------------------------------------

Scheduler = Callable[[Any], tuple[int, str]]


def native(peer: str, *words: str, options: tuple[str, ...] = (), says: str = "") -> Scheduler:
    """Return what runs the small workload with a scheduler of ours' tests, and returns exit code and output."""

    def run(shell: Any) -> tuple[int, str]:
        outcome = shell.simulate(peer, *words, options=options)
        assert "Traceback" not in outcome.err
        assert says in outcome.err + outcome.out
        return outcome.code, outcome.out

    return run


def batsim(fault: str, *options: str, says: str = "") -> Scheduler:
    """Return the same in Batsim's dialect."""

    def run(shell: Any) -> tuple[int, str]:
        outcome = shell.run(
            "run", "-p", "tiny", "-w", shell.small(), "--dialect", "batsim", "--out", "out", "--overwrite",
            "--hello-timeout", "600",
            "--decision-timeout", "600", *options, "--scheduler", *shell.peer("listener", fault),
        )  # fmt: skip
        assert "Traceback" not in outcome.err
        assert says in outcome.err + outcome.out
        return outcome.code, outcome.out

    return run


def second(shell: Any) -> tuple[int, str]:
    """Let a second scheduler come while the first is served; return how it ends, the first being undisturbed."""
    server = shell.start("serve", "-p", "tiny", "-w", shell.small(), "--out", "out")
    endpoint = server.until("listening at ").out.split()[2].rstrip(";")
    first = shell.spawn(*shell.peer("good", "10", endpoint=endpoint)).until("at 10.0")
    outcome = shell.run("schedule", "easy", "--connect", endpoint)
    shell.write("go", "")
    assert "peer ended completed" in first.finish().out
    assert server.finish().code == 0
    assert len(shell.ended_jobs()) == 4
    outcome.failed(4, "the server refused (busy)")
    return outcome.code, ""


def too_late(dialect: str) -> Scheduler:
    """Return what comes when the server has given up."""

    def run(shell: Any) -> tuple[int, str]:
        batsim = ("--dialect", "batsim", "--connect", "ipc://late.sock") if dialect == "batsim" else ()
        outcome = shell.run(
            "serve", "-p", "tiny", "-w", shell.small(), "--out", "out", *batsim, "--hello-timeout", "0.2"
        )
        outcome.failed(4, "within 0.2 s")
        return outcome.code, ""

    return run


SCHEDULERS: dict[str, tuple[Scheduler | None, Scheduler | None]] = {
    "replies slowly, but in time": (native("slow", options=LIMIT), batsim("slow-0.02", *LIMIT)),
    "never connects, or never says HELLO": (too_late("native"), too_late("batsim")),
    "connects too late": (too_late("native"), too_late("batsim")),
    "starts first": (None, batsim("good")),
    "falls silent": (
        native("hangs", "mid-run", options=LIMIT, says="within 1 s"),
        batsim("mid-hang", *LIMIT, says="within 1 s"),
    ),
    "replies too late": (native("hangs", "late", options=LIMIT, says="peer ended scheduler_timeout"), None),
    "dies": (native("dies", "mid-run", "SIGKILL", says="SIGKILL"), batsim("mid-SIGKILL", says="SIGKILL")),
    "replies twice": (native("dealer", "plain", "impatient", says="answers another message"), None),
    "sends decisions before the first notice": (
        native("stranger", "eager", says="the reply to WELCOME carries decisions"),
        None,
    ),
    "connects while another scheduler is served": (second, None),
    "disconnects and reconnects": (
        native("reconnects", says="disconnected after notice"),
        batsim("mid-anew", says="before the simulation was over"),
    ),
}


@pytest.mark.parametrize(
    "behaviour", [pytest.param(row, marks=pytest.mark.slow if row == "falls silent" else []) for row in SCHEDULERS]
)
def test_schedulers(shell: Any, behaviour: str) -> None:
    """The run ends, or continues, as the page says; a run that began has outputs."""
    codes = rows("Schedulers")[behaviour]
    for code, way in zip(codes, SCHEDULERS[behaviour], strict=True):
        if way is not None:
            ended, _ = way(shell)
            assert str(ended) == code


def test_the_page_has_these_schedulers() -> None:
    """The page and the tests have the same rows; some rows are tested with the endpoints."""
    assert list(rows("Schedulers")) == list(SCHEDULERS)
    assert all("–" in codes or None not in SCHEDULERS[name] or name == "starts first"
               for name, codes in rows("Schedulers").items())  # fmt: skip


# -- servers ----------------------------------------------------------------------------------------------------------


def ours(fault: str, *options: str, says: str = "", stop: str = "") -> Scheduler:
    """Return what serves a fake server with `schedule`, and returns its exit code; ``stop`` is when it gets Ctrl-C."""

    def run(shell: Any) -> tuple[int, str]:
        endpoint = f"ipc://{shell.temporary}/peer"
        peer = shell.spawn(*shell.peer("server", fault, endpoint=endpoint))
        scheduler = shell.start("schedule", "easy", "--connect", endpoint, *options)
        if stop:
            peer.until(stop)
            scheduler.signal(signal.SIGINT)
        outcome = scheduler.finish()
        if fault == "anew":
            peer.until("nobody came again")
        peer.kill()
        (shell.temporary / "peer").unlink(missing_ok=True)
        assert "Traceback" not in outcome.err
        assert says in outcome.err + outcome.out
        return outcome.code, outcome.out

    return run


def of_batsim(*frames: Any, options: tuple[str, ...] = (), says: str = "", stop: str = "") -> Scheduler:
    """Return the same for a fake Batsim that sends these frames."""

    def run(shell: Any) -> tuple[int, str]:
        endpoint = f"ipc://{shell.temporary}/peer"
        path = shell.write("frames.txt", "\n".join(one if isinstance(one, str) else json.dumps(one) for one in frames))
        scheduler = shell.start("schedule", "easy", "--dialect", "batsim", "--bind", endpoint, *options)
        peer = shell.spawn(*shell.peer("connector", path, endpoint=endpoint)) if frames else None
        if stop and peer is not None:
            peer.until(stop)
            scheduler.signal(signal.SIGINT)
        outcome = scheduler.finish()
        if peer is not None:
            peer.kill()
        assert "Traceback" not in outcome.err
        assert says in outcome.err + outcome.out
        return outcome.code, outcome.out

    return run


SERVERS: dict[str, tuple[Scheduler | None, Scheduler | None]] = {
    "is slow": (ours("slow"), of_batsim(BEGINS, "@slow", SUBMITTED, "@slow", ENDS)),
    "never appears, or never answers": (
        ours("mute", "--hello-timeout", "1", says="no server answered within 1 s"),
        of_batsim(options=("--hello-timeout", "0.5"), says="no server connected within 0.5 s"),
    ),
    "starts later": (ours("late-0.3"), of_batsim("@slow", BEGINS, SUBMITTED, ENDS)),
    "falls silent": (
        ours("silent", says="interrupted", stop="got 2"),
        of_batsim(BEGINS, "@wait", says="interrupted", stop="waits"),
    ),
    "dies": (ours("dies", says="the server disconnected"), of_batsim(BEGINS, says="the server disconnected")),
    "sends a message twice": (
        ours("twice", says="a notice is missing"),
        of_batsim(BEGINS, BEGINS, says="FIRST_NOTICE is not allowed"),
    ),
    "leaves a message out": (
        ours("gap", says="a notice is missing"),
        of_batsim(SUBMITTED, says="NOTICE is not allowed in state IDLE"),
    ),
    "sends before its turn": (ours("early", says="the frame cannot be read"), None),
    "sends a time that goes back": (
        ours("back", says="time goes back"),
        of_batsim(BEGINS, SUBMITTED, {"now": 4.0, "events": []}, says="time goes back"),
    ),
    "disconnects and reconnects": (
        ours("anew", says="the server disconnected"),
        of_batsim(BEGINS, "@anew", SUBMITTED, says="the server disconnected"),
    ),
}


@pytest.mark.parametrize("behaviour", SERVERS)
def test_servers(shell: Any, behaviour: str) -> None:
    """The scheduler ends, or continues, as the page says."""
    for code, way in zip(rows("Servers")[behaviour], SERVERS[behaviour], strict=True):
        if way is not None:
            assert str(way(shell)[0]) == code


def test_the_page_has_these_servers() -> None:
    """The page and the tests have the same rows."""
    assert list(rows("Servers")) == list(SERVERS)
    assert all("–" in codes or None not in SERVERS[name] for name, codes in rows("Servers").items())

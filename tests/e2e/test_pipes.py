"""Pipes and devices in the place of files: no command waits for them or reads them without end."""

import os
from typing import Any

import pytest

#: {what a pipe replaces: the command that reads it}
COMMANDS = {
    "platform.toml": ("validate", "platform.toml"),
    "cluster.xml": ("validate", "cluster.xml"),
    "workload.json": ("validate", "workload.json"),
    "study.toml": ("study", "run", "study.toml"),
    "run.toml": ("run", "run.toml"),
    "played.jsonl": ("check", "replay", "played.jsonl", "--server"),
    "case/case.toml": ("check", "cases", "case"),
    "done/out_config.json": ("report", "done"),
    "done/out_summary.json": ("explain", "job", "done", "w0!1"),
    "done/out_jobs.csv": ("compare", "done", "done"),
    "done/out_snapshot0000000001.gz": ("resume", "done"),
}


@pytest.mark.parametrize("device", ["pipe", "zero"])
@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_waits_for_a_pipe(shell: Any, name: str, device: str) -> None:
    """A pipe that nobody writes, or /dev/zero, is refused with one message."""
    path = shell.folder / name
    path.parent.mkdir(exist_ok=True)
    if device == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")

    outcome = shell.run(*COMMANDS[name])

    assert outcome.code == 2
    assert len(outcome.messages) == 1

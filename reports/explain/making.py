"""Make the index of a run: read its outputs, and repeat the run if possible."""

from math import inf
from pathlib import Path
from typing import Final

import msgspec

from pipistrelle.protocol.base.errors import printable
from pipistrelle.reports.explain.looks import RunIndex, Wanted
from pipistrelle.reports.explain.replay import replay
from pipistrelle.runs.description.setup import load_setup
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.description.spec_file import InputChanged, SpecError, convert_spec, with_digests
from pipistrelle.runs.folders.files import ExplainError, RunFiles, read_command, read_run
from pipistrelle.schedulers.policy.interfaces import Policy
from pipistrelle.server.outputs.folder import COMMAND_FILE
from pipistrelle.server.setup.described import describe_run
from pipistrelle.server.setup.setup import Setup

#: {field that decides a run besides workload and platform: its name in messages}
_REST: Final = (
    ("dropped", "the workload"),
    ("hosts_sha256", "the platform"),
    ("reliability", "failures and maintenance"),
    ("batsim", "the dialect"),
)


def make_index(folder: Path, key: str, only: Wanted | None = None, *, trust: bool = False) -> RunIndex:
    """Return a new index of a run, for the jobs that ``only`` selects or for all jobs.

    ``key`` is the digest of the outputs.

    If the folder names Python code as its scheduler, the run is repeated only with ``trust``, because that executes the
    code.

    Raises:
        TooMuch: if all jobs would take too much memory.
        PipistrelleError: if there are no outputs, or repeating the run failed.
    """
    files = read_run(folder)
    spec = described(files)
    reason = why_not_repeated(spec, trust=trust)
    if spec is None or reason is not None:
        return RunIndex(key, files, reason)
    return repeated(key, files, spec, setup_again(spec, files), spec.make_policy(warn=False, polls=False), only)


def repeated(
    key: str, files: RunFiles, spec: RunSpec, setup: Setup, policy: Policy, only: Wanted | None = None
) -> RunIndex:
    """Repeat a run and return its index.

    The index is for the jobs that ``only`` selects, or for all jobs. ``key`` is the digest of the outputs.

    Raises:
        TooMuch: if all jobs would take too much memory.
        PipistrelleError: if repeating the run failed.
    """
    ended = files.summary is not None and all(name in files.jobs for name in files.starts)
    found = replay(spec, setup, policy, files, until=inf if ended else files.until, only=only)
    for name, time in found.rejected.items():
        files.rejections.setdefault(name, time)
    known = {*files.jobs, *files.starts, *found.submitted}
    ids = (f"{prefix}!{one}" for prefix, workload in setup.workloads.items() for one in workload.ids)
    return RunIndex(
        key,
        files,
        None,
        found,
        {name: " ".join(f"{one.kind}:{one.job_id}" for one in some) for name, some in setup.conditions.items()},
        [name for name in ids if name not in known],
        spec.poll is not None,
    )


def described(files: RunFiles) -> RunSpec | None:
    """Return a run's description, or None if the folder has none.

    Raise ExplainError if the description is invalid.
    """
    raw = read_command(files.folder)
    if raw is None:
        return None
    try:
        return convert_spec(raw, str(files.folder / COMMAND_FILE))
    except SpecError as error:
        raise ExplainError(
            f"this does not say how a run was called: {error.what}",
            where=error.where,
            expected=error.expected,
            found=error.found,
            hint="--no-replay explains what the outputs alone tell.",
        ) from None


def why_not_repeated(spec: RunSpec | None, *, trust: bool) -> str | None:
    """Return why a run cannot be repeated; None if it can."""
    if spec is None:
        return "its folder has no out_command.json, which says how it was called"
    if spec.resumed is not None:
        return f"it went on from a snapshot of {printable(spec.resumed.folder)}, which another scheduler had decided"
    if spec.program:
        return f"its scheduler was a program, {printable(' '.join(spec.program))}"
    if spec.program is not None:
        return "its scheduler was started elsewhere"
    if spec.code is not None and not trust:
        return f"its scheduler is code, {printable(spec.code)}, which --trust lets run"
    return "it spoke the batsim dialect" if spec.dialect == "batsim" else None


def setup_again(spec: RunSpec, files: RunFiles) -> Setup:
    """Load the setup of a finished run.

    Raise PipistrelleError if an input file is missing or changed.
    """
    try:
        with_digests(spec)
    except InputChanged as error:
        raise _changed(error.where or "", error.found or "") from None
    setup = load_setup(spec)
    now = msgspec.json.decode(msgspec.json.encode(describe_run(setup)))
    for key, name in (("workloads", " ".join(spec.workload)), ("platform", spec.platform or "the platform"), *_REST):
        if now[key] != files.config.get(key):
            raise _changed(name, "its content is not that of the run")
    return setup


def _changed(name: str, found: str) -> ExplainError:
    return ExplainError(
        "the run cannot be repeated: an input has changed since",
        where=printable(name),
        found=found,
        hint="Bring it back (relative names are looked up from the present folder); --no-replay explains what the "
        "outputs alone tell.",
    )

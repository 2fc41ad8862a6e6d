"""What a user asked `run` or `serve` for, as out_command.json keeps it, so that the run can be repeated."""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pipistrelle.cli.options.parts import PolicySettings
from pipistrelle.cli.options.shared import make_setup
from pipistrelle.protocol.base.errors import printable
from pipistrelle.schedulers.catalogue.names import SUFFIX
from pipistrelle.server.begin import describe_run
from pipistrelle.server.outputs.folder import COMMAND_FILE
from pipistrelle.studies.inputs.reliability import ReliabilityOptions
from pipistrelle.traces.logs.kinds import Units

if TYPE_CHECKING:
    from pipistrelle.schedulers.policy.interfaces import Policy
    from pipistrelle.server.setup import Setup
    from pipistrelle.studies.explain.files import ExplainError, RunFiles

#: what else decides a run, and what to call it
_REST: Final = (
    ("dropped", "the workload"),
    ("hosts_sha256", "the platform"),
    ("reliability", "failures and maintenance"),
    ("batsim", "the dialect"),
)


class Parts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parts that replace those of a scheduler of ours, None for its own."""

    order: str | None = None
    backfill: str | None = None
    placement: str | None = None


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The options that decide a run, names of files as the user gave them.

    ``scheduler`` is the name of one of ours, with ``parts`` replaced and ``settings``; ``program`` the
    words of another; both None where the scheduler was started elsewhere. ``files`` are {name: SHA-256} of the files
    that the scheduler was read from, and of those of failures and maintenance.
    """

    platform: str | None
    workload: str
    sort: bool
    units: Units = "nodes"
    timezone: str | None = None
    strict: bool
    dialect: str
    reliability: ReliabilityOptions
    scheduler: str | None = None
    program: Sequence[str] | None = None
    parts: Parts = Parts()
    settings: PolicySettings = PolicySettings()
    files: dict[str, str] = {}

    @classmethod
    def of(
        cls,
        platform: str | None,
        workload: str,
        *,
        sort: bool,
        units: Units,
        timezone: str | None,
        strict: bool,
        dialect: str,
        reliability: ReliabilityOptions,
        scheduler: str | None = None,
        program: Sequence[str] | None = None,
        parts: dict[str, str | None] | None = None,
        settings: PolicySettings | None = None,
    ) -> "Asked":
        """Return what was asked for, with the digests of the files."""
        settings = settings or PolicySettings()
        names = [*reliability.files, *([] if settings.config is None else [settings.config])]
        if scheduler is not None:
            own = scheduler if scheduler.endswith(SUFFIX) else scheduler.rpartition(":")[0]
            names.append(own)
        files = {name: digest for name in names if (digest := _digest(name)) is not None}
        return cls(
            platform=platform,
            workload=workload,
            sort=sort,
            units=units,
            timezone=timezone,
            strict=strict,
            dialect=dialect,
            reliability=reliability,
            scheduler=scheduler,
            program=program,
            parts=Parts(**(parts or {})),
            settings=settings,
            files=dict(sorted(files.items())),
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found

    @property
    def foreign(self) -> str | None:
        """Why its scheduler is out of reach here; None if it is one of ours."""
        if self.program is not None:
            return f"its scheduler was a program, {printable(' '.join(self.program))}"
        if self.scheduler is None:
            return "its scheduler was started elsewhere"
        return "it spoke the batsim dialect" if self.dialect == "batsim" else None

    def setup(self, files: "RunFiles") -> "Setup":
        """Return the run's setup once more.

        Raises
        ------
        PipistrelleError
            when an input is not there any more, or is not what it was.
        """
        for name, digest in self.files.items():
            if _digest(name) != digest:
                raise _changed(
                    name, "its content is not that of the run" if os.path.isfile(name) else "it is not there"
                )
        setup = make_setup(
            self.platform,
            self.workload,
            sort=self.sort,
            units=self.units,
            timezone=self.timezone,
            strict=self.strict,
            dialect=self.dialect,
            reliability=self.reliability,
        )
        now = msgspec.json.decode(msgspec.json.encode(describe_run(setup)))
        for key, name in (("workloads", self.workload), ("platform", self.platform or "the platform"), *_REST):
            if now[key] != files.config.get(key):
                raise _changed(name, "its content is not that of the run")
        return setup

    def policy(self) -> "Policy":
        """Return the run's policy once more, but without polling; PipistrelleError if there is none."""
        assert self.scheduler is not None, "a foreign scheduler"
        return replace(self.settings, poll=None).make_policy(
            self.scheduler, warn=False, **msgspec.structs.asdict(self.parts)
        )


def read_asked(files: "RunFiles") -> Asked | None:
    """Return what a run was asked for, None if nothing tells; ExplainError if what tells makes no sense."""
    from pipistrelle.studies.explain.files import ExplainError, read_command

    command = read_command(files.folder)
    if command is None:
        return None
    try:
        return msgspec.convert(command, Asked)
    except msgspec.ValidationError as error:
        raise ExplainError(
            f"this does not say how a run was called ({printable(str(error))[:200]})",
            where=str(files.folder / COMMAND_FILE),
            hint="--no-replay explains what the outputs alone tell.",
        ) from None


def _digest(name: str) -> str | None:
    if not os.path.isfile(name):
        return None
    try:
        with open(name, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def _changed(name: str, found: str) -> "ExplainError":
    from pipistrelle.studies.explain.files import ExplainError

    return ExplainError(
        "the run cannot be repeated: an input has changed since",
        where=printable(name),
        found=found,
        hint="Bring it back (relative names are looked up from the present folder); --no-replay explains what the "
        "outputs alone tell.",
    )

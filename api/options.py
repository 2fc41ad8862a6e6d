"""The keywords of `run`.

Each keyword is an option of ``pipistrelle run`` and a field of a `RunSpec`.
"""

import os
from collections.abc import Mapping, Sequence
from datetime import timedelta
from os import PathLike, fspath
from typing import Any, Final, Literal, TypedDict

import msgspec
from msgspec.structs import FieldInfo, fields

from pipistrelle.protocol.base.errors import PipistrelleError, did_you_mean, printable
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.description.spec_file import convert_spec, read_spec
from pipistrelle.runs.inputs.step_texts import parse_steps
from pipistrelle.runs.inputs.steps import Step
from pipistrelle.traces.logs.kinds import Units
from pipistrelle.traces.workload import decimal_text

#: the name of a bundled item, or of a file
Name = str | PathLike[str]
#: a length of time: text such as ``36h``, a number of seconds, or a timedelta
Length = str | float | timedelta
#: a step that changes a workload: text such as ``scale --load 0.9``, or a table such as ``{"step": "scale", "load":
#: 0.9}``; a text may have several steps, separated by ``then``
StepLike = str | Mapping[str, Any] | Step
#: arguments of `run` that are not fields of `RunKeywords`
_OWN: Final = ("workload", "platform", "scheduler", "out", "overwrite", "progress", "record", "description")
#: fields of `RunSpec` that a run fills in itself
_RECORDED: Final = ("files", "resumed")


class OptionError(PipistrelleError):
    """A keyword or its value is not valid."""


class RunKeywords(TypedDict, total=False):
    """The optional keywords of `run`.

    They are named as the options of ``pipistrelle run``, with underscores. ``from_`` stands for ``--from``, because
    ``from`` is a Python keyword. Times are texts such as ``"36h"``, numbers of seconds, or timedeltas. An option that
    may be repeated takes a list.
    """

    scale_platform: str | float
    node_table: Name
    sort: bool
    units: Units
    timezone: str
    columns: str
    transform: StepLike | Sequence[StepLike]
    ignore_constraints: bool
    partition_pools: str | Sequence[str]
    from_: str
    warm: bool
    cancellations: Literal["keep", "drop"]
    strict: bool
    dispersion: float
    until: Length
    queue_lengths: bool
    format: Literal["csv", "parquet"]
    dialect: Literal["native", "batsim"]
    failures: str | Sequence[str]
    repair: Length
    seed: int
    reliability_factor: float
    outages: Name
    outages_class: str
    outages_start: str | float
    outages_shortest: Length
    maintenance: str | Sequence[str]
    checkpoint: Length
    dump: Length
    read: Length
    spares: str | float
    resilience: Literal["moldable", "grid"]
    requeue: str
    max_attempts: int
    expected_attempts: int
    restart_walltime: str
    checkpoint_walltime: str
    batsim: Mapping[str, Any]
    order: str
    backfill: str
    placement: str
    formula: str
    queue_priority: Mapping[str, float]
    fairshare_entity: Literal["user", "group", "account", "queue", "qos"]
    fairshare_shares: Mapping[str, float]
    unknown_shares: float
    fairshare_decay_time: Length
    fairshare_decay_factor: float
    backfill_depth: int
    strict_ordering: bool
    node_order: str
    age_aware: bool
    dual_ended: str | Sequence[str]
    base_order: str | Sequence[str]
    reliability_target: float
    reliability: Name
    blocking: float
    admission: Literal["queue", "block"]
    preempt_type: Literal["qos", "partition_prio"]
    preempt_mode: str | Sequence[str]
    preempt: str | Sequence[str]
    priority_tier: Mapping[str, float]
    preempt_grace: str | Sequence[str]
    preempt_exempt_time: Length
    preempt_youngest_first: bool
    config: Name
    strict_config: bool
    accounting: Name | Sequence[Name]
    reservations: str | Sequence[str]
    slurm: Mapping[str, str | float | bool]
    slurm_prefix: Name
    poll: Length


def path_text(value: object, argument: str, where: str) -> str:
    """Return a bundled name or a file's path as text.

    Args:
        value: the name or path.
        argument: name of the caller's argument, for error messages.
        where: name of the calling function, for error messages.

    Raises:
        OptionError: the value is neither text nor a path.
    """
    if isinstance(value, str | PathLike):
        return os.fsdecode(value)
    raise OptionError(f"{argument}: expected a name or a path, found {type(value).__name__}", where=where)


def spec_of(options: Mapping[str, Any], description: Name | None, where: str) -> RunSpec:
    """Convert keywords of `run` to the description of a run.

    Args:
        options: {keyword: value}; None means that the option is not given.
        description: a file whose values the keywords override, as in ``pipistrelle run FILE``.
        where: name of the calling function, for error messages.

    Raises:
        PipistrelleError: a keyword is unknown, a value is not valid, or the file is wrong.
    """
    known = {one.name: one for one in fields(RunSpec) if one.name not in _RECORDED}
    for name in options:
        if name not in known:
            names = sorted({*known, *_OWN})
            raise OptionError(f"there is no option '{printable(name)}'", where=where, hint=did_you_mean(name, names))
    told = [(known[name], value) for name, value in options.items() if value is not None]
    given = {one.encode_name: keyword(one, value, where) for one, value in told}
    if description is None:
        return convert_spec(given, where)
    return convert_spec(
        {**msgspec.to_builtins(read_spec(path_text(description, "description", where))), **given}, where
    )


def keyword(field: FieldInfo, value: Any, where: str) -> Any:
    """Convert the value of the keyword ``field`` as `plain` does.

    Steps that change a workload may be texts.
    """
    return plain(_steps(value, where) if field.name == "transform" else value, field.type)


def _steps(value: Any, where: str) -> list[Any]:
    """Return the steps that a value of ``transform`` describes.

    They are tables and `Step` objects.
    """
    if isinstance(value, str):
        return list(parse_steps(value, f"{where}: transform"))
    if isinstance(value, Mapping | Step):
        return [value]
    if isinstance(value, Sequence):
        return [step for one in value for step in _steps(one, where)]
    raise OptionError(
        "transform: not a change of the workload",
        where=where,
        expected="'scale --load 0.9', or {'step': 'scale', 'load': 0.9}",
        found=printable(repr(value)),
    )


def plain(value: Any, kind: Any = None) -> Any:
    """Convert a keyword's value to texts, numbers, lists and tables.

    The result is as in a TOML file.

    Args:
        value: the value.
        kind: type of the option's field in `RunSpec`; a number becomes text if the field takes only texts.
    """
    if isinstance(value, timedelta):
        return f"{decimal_text(value.total_seconds())}s"
    if isinstance(value, PathLike):
        value = fspath(value)
    listed = _is_listed(kind)
    if isinstance(value, Step):
        value = msgspec.to_builtins(value)
    if isinstance(value, Mapping):
        table = {str(name).replace("_", "-") if listed else name: plain(one) for name, one in value.items()}
        return [table] if listed else table
    if isinstance(value, str):
        return [value] if listed else value
    if isinstance(value, Sequence):
        return [one for part in value for one in (plain(part, kind) if listed else [plain(part)])]
    if isinstance(value, int | float) and not isinstance(value, bool) and _is_text(kind):
        return decimal_text(value)
    return value


def _is_listed(kind: Any) -> bool:
    return "tuple[" in str(kind)


def _is_text(kind: Any) -> bool:
    text = str(kind)
    return "str" in text and "int" not in text and "float" not in text

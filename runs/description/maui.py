"""Warnings about names in a maui.cfg that the run does not have.

They are names of users, groups, queues and hosts.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pipistrelle.platforms.description import Platform
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.runs.description.policy import MAUI
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.schedulers.catalogue.registry import order_of
from pipistrelle.schedulers.maui.config.read import read_maui_config
from pipistrelle.schedulers.maui.config.settings import DEFAULT, Credential, MauiSettings
from pipistrelle.schedulers.maui.standing import StandingReservations
from pipistrelle.traces.workload import Workload, label_column

#: {kind of credential in maui.cfg: label of a job}
_LABELS: Final = {"USER": "user", "GROUP": "group", "ACCOUNT": "account", "CLASS": "queue", "QOS": "qos"}
_NAMED: Final = 5


def maui_remarks(spec: RunSpec, platform: Platform, workload: Workload) -> list[str]:
    """Return warnings about names in a maui.cfg that machine and workload lack.

    Return [] if the scheduler reads no maui.cfg. If the scheduler's preset names the maui.cfg, instead of the option
    ``config``, the result includes the warnings of the file's parser, because they are shown nowhere else.

    Raises:
        PipistrelleError: the file is unreadable, or a standing reservation needs hosts that the machine does not have.
    """
    name = spec.scheduler
    if not isinstance(name, str) or spec.program is not None:
        return []
    config, strict, ordered = spec.config, spec.strict_config, None if name == MAUI else order_of(name, spec.order)
    if ordered is not None:
        own = ordered[1] if config is None else {}
        config, strict = own.get("config", config), own.get("strict-config", strict)
    if config is None or MAUI not in (name, ordered and ordered[0]):
        return []
    settings, warnings = read_maui_config(Path(config), strict=strict)
    said = [str(warning) for warning in warnings] if spec.config is None else []
    whole = name == MAUI  # the whole scheduler is maui, not only the job order
    if whole:
        StandingReservations(settings, Machine(platform.units, platform.info))
    present = {kind: set(label_column(workload, label) or ()) - {""} for kind, label in _LABELS.items()}
    present["QOS"] |= {found.default_qos for found in _each(settings) if found.default_qos is not None}
    return [*said, *(f"{config}: {remark}" for remark in _remarks(settings, present, workload.name, whole=whole))]


def _each(settings: MauiSettings) -> Iterator[Credential]:
    yield settings.system
    for names in settings.credentials.values():
        yield from names.values()


def _remarks(settings: MauiSettings, present: dict[str, set[str]], jobs: str, *, whole: bool) -> Iterator[str]:
    for kind, label in _LABELS.items():
        there, credentials = present[kind], settings.credentials.get(kind, {})
        if not there:
            without = [f"{kind}CFG[{name}]" for name in credentials if not (kind == "QOS" and name == DEFAULT)]
            if settings.text("FSPOLICY") != "NONE" and settings.number(f"FS{kind}WEIGHT") and kind != "QOS":
                without.append(f"FS{kind}WEIGHT")
            if whole and any(limit.per == kind for found in _each(settings) for limit in found.limits):
                without.append(f"each limit per {kind.lower()}")
            if without:
                effect = "has no effect" if len(without) == 1 else "have no effect"
                yield f"the jobs of {jobs} have no {label}: {_some(without)} {effect}"
            continue
        absent = [name for name in credentials if name not in there and name != DEFAULT]
        if absent:
            yield f"no job of {jobs} has the {label} of {_some([f'{kind}CFG[{name}]' for name in absent])}"


def _some(names: list[str]) -> str:
    text = ", ".join(names[:_NAMED])
    return text if len(names) <= _NAMED else f"{text} and {len(names) - _NAMED} more"

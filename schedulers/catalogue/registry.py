"""Find schedulers by name.

They may be in this package, in other packages, or in users' files.
"""

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from pipistrelle.protocol.base.errors import did_you_mean, printable
from pipistrelle.protocol.base.log import logger
from pipistrelle.schedulers.catalogue.names import (
    OWN,
    RECORDED,
    SLURMCTLD,
    SUFFIX,
    classes_in,
    entries,
    library_names,
    registered,
)
from pipistrelle.schedulers.catalogue.parts import compose, make_placement
from pipistrelle.schedulers.catalogue.presets import Preset, library_preset, read_preset
from pipistrelle.schedulers.policy.errors import PolicyError
from pipistrelle.schedulers.policy.interfaces import Placement, Policy

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from pipistrelle.schedulers.partitions.placement import PartitionOptions
    from pipistrelle.schedulers.preemption.options import PreemptionOptions

#: {option of preemption: its name on the command line}
OPTION_OF: Final = {
    "type": "--preempt-type",
    "mode": "--preempt-mode",
    "preempt": "--preempt",
    "priority_tier": "--priority-tier",
    "grace": "--preempt-grace",
    "exempt_time": "--preempt-exempt-time",
    "youngest_first": "--preempt-youngest-first",
}
_WITH: Final = "Give --reliability NAME|FILE|auto, or a preset with a table 'reliability'."


def describe(name: str) -> str:
    """Return a preset's description, or another scheduler's first docstring line."""
    if name in library_names():
        return library_preset(name).description
    if name in OWN:
        return OWN[name]
    try:
        text = getattr(_load_entry(entries()[name]), "__doc__", None) or ""
    except PolicyError as error:
        return f"not available: {error.what}"
    return text.strip().partition("\n")[0]


def make_policy(
    name: str,
    *,
    order: str | None = None,
    backfill: str | None = None,
    placement: str | None = None,
    order_options: Mapping[str, Any] | None = None,
    backfill_options: Mapping[str, Any] | None = None,
    placement_options: Mapping[str, Any] | None = None,
    reliability: "PartitionOptions | None" = None,
    preemption: Mapping[str, Any] | None = None,
    **partitions: Any,
) -> Policy:
    """Return the policy of this name, with other parts or options if given.

    ``name`` is a registered scheduler, a preset's ``path/to/file.toml`` (docs/reference/scheduling.md),
    ``package.module:OBJECT`` or ``path/to/file.py:OBJECT``. OBJECT is a class or function that returns a policy when
    called without arguments. Only presets have parts and options to replace; ``maui`` and ``recorded`` accept a
    placement and its options. Given options are merged into the preset's; options of replaced parts are dropped.

    Args:
        placement: name, possibly with options, such as ``contiguous,fit=best``.
        reliability: partitions by reliability, instead of the preset's.
        preemption: options of `PreemptionOptions` by name; they take precedence over the preset's.
        partitions: ``blocking`` or ``admission``, which replace these options of the partitions.

    Raises:
        PolicyError: the name is unknown, or the object cannot be loaded or is not a policy.
    """
    parts = {
        axis: part
        for axis, part in (("order", order), ("backfill", backfill), ("placement", placement))
        if part is not None
    }
    preset = _preset(name)
    if preset is not None:
        own_name = printable(Path(name).stem) if name.endswith(SUFFIX) else name
        full_name = "+".join([own_name, *(f"{axis}={part}" for axis, part in parts.items())])
        preempts = preset.preemption
        if preemption:
            preempts = _preempting(preempts, preemption)
        composed = compose(
            name=full_name,
            order_options=_options(preset.order_options if order is None else {}, order_options),
            backfill_options=_options(preset.backfill_options if backfill is None else {}, backfill_options),
            placement_options=_options(preset.placement_options if placement is None else {}, placement_options),
            preemption=preempts,
            where=None if parts or order_options or backfill_options or placement_options or preemption else name,
            **(preset.parts | parts),
        )
        options = reliability or preset.reliability
        if options is not None and preempts is not None:
            what = "partitions by reliability cannot be combined with preemption"
            raise PolicyError(what, where=full_name, expected="--reliability, or --preempt-type")
        if options is None:
            if partitions:
                raise PolicyError(
                    "the scheduler has no partitions by reliability", where=f"--{' --'.join(partitions)}", hint=_WITH
                )
            return composed
        from pipistrelle.schedulers.partitions.policy import PartitionedPolicy  # most runs do not need it

        return PartitionedPolicy(composed, replace(options, **partitions))
    if preemption:
        hint = "Configure the preemption of maui in maui.cfg." if name == "maui" else None
        found = ", ".join(OPTION_OF.get(one, one) for one in preemption)
        raise _needs_preset(f"'{printable(name)}' has no options of preemption", found, hint)
    if reliability is not None or partitions:
        found = ", ".join(f"--{one}" for one in [*(["reliability"] if reliability else []), *partitions])
        raise _needs_preset(f"'{printable(name)}' does not support partitions by reliability", found)
    if order_options or backfill_options or (placement_options and name not in OWN):
        found = ", ".join([*(order_options or {}), *(backfill_options or {}), *(placement_options or {})])
        raise _needs_preset(f"'{printable(name)}' has no options", found)
    if name in OWN and not parts.keys() - {"placement"}:
        picks = own_placement(placement, placement_options)
        if name == RECORDED:
            from pipistrelle.schedulers.catalogue.recorded import RecordedPolicy

            return RecordedPolicy(picks)
        if name == SLURMCTLD:
            raise PolicyError(
                "the scheduler slurmctld runs in a process of its own",
                hint="Use 'pipistrelle run --scheduler slurmctld', or 'pipistrelle schedule slurmctld'.",
            )
        if name == "slurm":
            raise PolicyError(
                "the scheduler slurm needs the configuration of a cluster", expected="--config slurm.conf"
            )
        from pipistrelle.schedulers.maui.policy import MauiPolicy  # most runs do not need it

        return MauiPolicy(placement=picks)
    if parts:
        raise _needs_preset(f"'{name}' has no parts to replace by --{' --'.join(parts)}")
    others = entries()
    if name in others:
        made = _call(_load_entry(others[name]), name)
    elif ":" in name:
        made = _call(_load_object(name), name)
    else:
        raise PolicyError(
            f"there is no scheduler '{name}'",
            hint=classes_in(name)
            or f"{did_you_mean(name, registered())} Your own file is given as file.toml or file.py:CLASS.",
        )
    return checked_policy(made, name)


def called_policy(factory: Any, where: str) -> Policy:
    """Call a class or function without arguments and return the policy that it makes.

    Raises:
        PolicyError: the call fails, or its result is not a policy.
    """
    return checked_policy(_call(factory, where), where)


def checked_policy(made: Any, where: str) -> Policy:
    """Return ``made`` itself, after checking that it is a policy.

    Raise PolicyError if it lacks a member of a policy. ``where`` names its source in messages.
    """
    for attribute in ("name", "order", "decide"):
        if not hasattr(made, attribute):
            raise PolicyError(
                f"this is not a policy: it has no '{attribute}'",
                where=where,
                expected="an object with name, order and decide(view)",
                found=type(made).__name__,
            )
    policy: Policy = made
    return policy


def _needs_preset(what: str, found: str | None = None, hint: str | None = None) -> PolicyError:
    expected = f"a TOML file or one of {', '.join(library_names())}"
    return PolicyError(what, expected=expected, found=found, hint=hint)


def _preempting(own: "PreemptionOptions | None", given: Mapping[str, Any]) -> "PreemptionOptions":
    """Return a preset's preemption options ``own``, updated by the options ``given``.

    Raises:
        PolicyError: neither has the option ``type``.
    """
    from pipistrelle.schedulers.preemption.options import PreemptionOptions

    if own is None and "type" not in given:
        raise PolicyError(
            "options of preemption need a type",
            where=", ".join(OPTION_OF.get(one, one) for one in given),
            expected="--preempt-type, or a preset with a table 'preemption'",
        )
    return PreemptionOptions(**given) if own is None else replace(own, **given)


def order_of(name: str, order: str | None = None) -> tuple[str, dict[str, Any]] | None:
    """Return (name, options) of the order that a preset uses.

    If ``order`` is given, it replaces the preset's order and has no options. Return None if ``name`` is not a preset.
    """
    preset = _preset(name)
    if preset is None:
        return None
    return (preset.order, preset.order_options) if order is None else (order, {})


def placement_of(name: str) -> str | None:
    """Return the name of a preset's placement; None if ``name`` is not a preset."""
    preset = _preset(name)
    return None if preset is None else preset.placement


def preemption_of(name: str) -> "PreemptionOptions | None":
    """Return a preset's preemption options; None if it has none or is not a preset."""
    preset = _preset(name)
    return None if preset is None else preset.preemption


def own_placement(placement: str | None, options: Mapping[str, Any] | None) -> Placement | None:
    """Return a new placement by name and options, for a scheduler with its own rules.

    Return None if neither name nor options are given. Options without a name are for ``lowest``. Raise the errors of
    `make_placement`.
    """
    return make_placement(placement or "lowest", options) if placement is not None or options else None


def _options(own: Mapping[str, Any], given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a copy of a preset's options ``own``, updated by the options ``given``.

    Nested tables are merged.
    """
    merged = dict(own)
    for key, value in (given or {}).items():
        before = merged.get(key)
        merged[key] = before | value if isinstance(before, dict) and isinstance(value, dict) else value
    return merged


def _preset(name: str) -> Preset | None:
    """Return the preset with this name or in this file; None if there is none."""
    if name in library_names():
        return library_preset(name)
    return read_preset(Path(name)) if name.endswith(SUFFIX) else None


def _load_entry(point: "EntryPoint") -> Any:
    logger()  # must be set up before the other package's code uses loguru
    try:
        return point.load()
    except Exception as error:  # another package's code
        raise PolicyError(
            f"the scheduler cannot be loaded ({type(error).__name__}: {error})", where=f"{point.name} = {point.value}"
        ) from error


def _load_object(name: str) -> Any:
    logger()  # must be set up before the user's code uses loguru
    module_name, _, attribute = name.rpartition(":")
    try:
        module = _load_file(Path(module_name)) if module_name.endswith(".py") else importlib.import_module(module_name)
    except PolicyError:
        raise
    except Exception as error:  # importing runs the user's code
        raise PolicyError(f"cannot import it ({type(error).__name__}: {error})", where=module_name) from error
    try:
        return getattr(module, attribute)
    except AttributeError:
        public = [key for key in vars(module) if not key.startswith("_")]
        raise PolicyError(f"it has no '{attribute}'", where=module_name, hint=did_you_mean(attribute, public)) from None


def _load_file(path: Path) -> Any:
    if not path.is_file():
        raise PolicyError("there is no such file", where=str(path))
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location(f"pipistrelle_user_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise PolicyError("this is not a Python file", where=str(path))
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _call(factory: Any, name: str) -> Any:
    try:
        return factory()
    except Exception as error:  # the user's code again
        raise PolicyError(
            f"cannot create the policy ({type(error).__name__}: {error})",
            where=name,
            expected="a class or function without required arguments",
        ) from error

"""Schedulers by name: the library's, those that other packages register, and a user's own file or module."""

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from pipistrelle.protocol.base.errors import did_you_mean, printable
from pipistrelle.protocol.base.log import logger
from pipistrelle.schedulers.catalogue.names import OWN, RECORDED, SUFFIX, entries, library_names, registered
from pipistrelle.schedulers.catalogue.parts import compose, make_placement
from pipistrelle.schedulers.catalogue.presets import Preset, library_preset, read_preset
from pipistrelle.schedulers.policy.errors import PolicyError
from pipistrelle.schedulers.policy.interfaces import Placement, Policy

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from pipistrelle.schedulers.partitions.placement import PartitionOptions
    from pipistrelle.schedulers.preemption.options import PreemptionOptions

#: {option of preemption: how the command line calls it}
OPTION_OF: Final = {
    "type": "--preempt-type",
    "mode": "--preempt-mode",
    "preempt": "--preempt",
    "priority_tier": "--priority-tier",
    "grace": "--preempt-grace",
    "exempt_time": "--preempt-exempt-time",
    "youngest_first": "--preempt-youngest-first",
}
_WITH: Final = "They come with --reliability NAME|FILE|auto, or the table 'reliability' of a preset."


def describe(name: str) -> str:
    """Return one line on a registered scheduler: the preset's description, or the first line of documentation."""
    if name in library_names():
        return library_preset(name).description
    if name in OWN:
        return OWN[name]
    try:
        text = getattr(_load_entry(entries()[name]), "__doc__", None) or ""
    except PolicyError as error:
        return f"cannot be had: {error.what}"
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
    """Return the policy of this name, with other parts or options if they are given.

    ``name`` is a registered scheduler, ``path/to/file.toml`` with a preset (docs/reference/scheduling.md), or
    ``package.module:OBJECT`` or ``path/to/file.py:OBJECT``, where the object is a class or function that returns a
    policy when called without arguments. Only presets have parts that can be replaced, and options; those that are
    given are added to the preset's own, and those of a part that is replaced do not count; ``maui`` and ``recorded``
    take a placement and its options.
    ``placement`` may have its options beside its name, as ``contiguous,fit=best``.

    ``reliability`` has jobs keep to partitions by reliability, in place of what the preset says of that; ``blocking``
    and ``admission`` change single options of either. ``preemption`` has options of `PreemptionOptions` by name, which
    go before those of the preset.

    Raises
    ------
    PolicyError
        when there is none, or it cannot be loaded, or is no policy.
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
            what = "partitions by reliability and preemption do not go together"
            raise PolicyError(what, where=full_name, expected="--reliability, or --preempt-type")
        if options is None:
            if partitions:
                raise PolicyError(
                    "there are no partitions by reliability", where=f"--{' --'.join(partitions)}", hint=_WITH
                )
            return composed
        from pipistrelle.schedulers.partitions.policy import PartitionedPolicy  # most runs start without it

        return PartitionedPolicy(composed, replace(options, **partitions))
    if preemption:
        raise PolicyError(
            f"'{printable(name)}' takes no options of preemption",
            expected=f"a TOML file or one of {', '.join(library_names())}",
            found=", ".join(OPTION_OF.get(one, one) for one in preemption),
            hint="The scheduler maui preempts as its maui.cfg says." if name == "maui" else None,
        )
    if reliability is not None or partitions:
        raise PolicyError(
            f"'{printable(name)}' keeps to no partitions by reliability",
            expected=f"a TOML file or one of {', '.join(library_names())}",
            found=", ".join(f"--{one}" for one in [*(["reliability"] if reliability else []), *partitions]),
        )
    if order_options or backfill_options or (placement_options and name not in OWN):
        named = ", ".join([*(order_options or {}), *(backfill_options or {}), *(placement_options or {})])
        raise PolicyError(
            f"'{printable(name)}' has no options",
            expected=f"a TOML file or one of {', '.join(library_names())}",
            found=named,
        )
    if name in OWN and not parts.keys() - {"placement"}:
        picks = own_placement(placement, placement_options)
        if name == RECORDED:
            from pipistrelle.schedulers.catalogue.recorded import RecordedPolicy

            return RecordedPolicy(picks)
        from pipistrelle.schedulers.maui.policy import MauiPolicy  # most runs start without it

        return MauiPolicy(placement=picks)
    if parts:
        raise PolicyError(
            f"'{name}' has no parts that could be replaced by --{' --'.join(parts)}",
            expected=f"a TOML file or one of {', '.join(library_names())}",
        )
    others = entries()
    if name in others:
        made = _call(_load_entry(others[name]), name)
    elif ":" in name:
        made = _call(_load_object(name), name)
    else:
        raise PolicyError(
            f"there is no scheduler '{name}'",
            hint=f"{did_you_mean(name, registered())} A file of yours is given as file.toml or file.py:CLASS.",
        )
    for attribute in ("name", "order", "decide"):
        if not hasattr(made, attribute):
            raise PolicyError(
                f"this is no policy: it has no '{attribute}'",
                where=name,
                expected="an object with name, order and decide(view)",
                found=type(made).__name__,
            )
    policy: Policy = made
    return policy


def _preempting(own: "PreemptionOptions | None", given: Mapping[str, Any]) -> "PreemptionOptions":
    """Return a preset's options of preemption with others in their place; PolicyError if they lack a type."""
    from pipistrelle.schedulers.preemption.options import PreemptionOptions

    if own is None and "type" not in given:
        raise PolicyError(
            "nothing says who may preempt whom",
            where=", ".join(OPTION_OF.get(one, one) for one in given),
            expected="--preempt-type, or a preset with a table 'preemption'",
        )
    return PreemptionOptions(**given) if own is None else replace(own, **given)


def order_of(name: str, order: str | None = None) -> tuple[str, dict[str, Any]] | None:
    """Return a preset's order, or what replaces it, and the options that the preset gives it; None for what is none.

    Raises
    ------
    PolicyError
        when the preset's file cannot be read.
    """
    preset = _preset(name)
    if preset is None:
        return None
    return (preset.order, preset.order_options) if order is None else (order, {})


def preemption_of(name: str) -> "PreemptionOptions | None":
    """Return what a preset says of preemption; None if it says nothing, or this is no preset.

    Raises
    ------
    PolicyError
        when the preset's file cannot be read.
    """
    preset = _preset(name)
    return None if preset is None else preset.preemption


def own_placement(placement: str | None, options: Mapping[str, Any] | None) -> Placement | None:
    """Return the placement of a scheduler that has its own rules for units unless it is given one, or its options.

    Options alone are those of ``lowest``. PolicyError as `make_placement` raises it.
    """
    return make_placement(placement or "lowest", options) if placement is not None or options else None


def _options(own: Mapping[str, Any], given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a preset's options with others in their place; tables within are merged."""
    merged = dict(own)
    for key, value in (given or {}).items():
        before = merged.get(key)
        merged[key] = before | value if isinstance(before, dict) and isinstance(value, dict) else value
    return merged


def _preset(name: str) -> Preset | None:
    """Return the preset of this name or in this file, None if the name is that of something else."""
    if name in library_names():
        return library_preset(name)
    return read_preset(Path(name)) if name.endswith(SUFFIX) else None


def _load_entry(point: "EntryPoint") -> Any:
    logger()  # the other package's code may use loguru: by then it must be set up
    try:
        return point.load()
    except Exception as error:  # another package's code
        raise PolicyError(
            f"the scheduler cannot be loaded ({type(error).__name__}: {error})", where=f"{point.name} = {point.value}"
        ) from error


def _load_object(name: str) -> Any:
    logger()  # the user's code may use loguru: by then it must be set up
    module_name, _, attribute = name.rpartition(":")
    try:
        module = _load_file(Path(module_name)) if module_name.endswith(".py") else importlib.import_module(module_name)
    except PolicyError:
        raise
    except Exception as error:  # importing runs the user's code: anything may come out of it
        raise PolicyError(f"cannot import it ({type(error).__name__}: {error})", where=module_name) from error
    try:
        return getattr(module, attribute)
    except AttributeError:
        public = [key for key in vars(module) if not key.startswith("_")]
        raise PolicyError(
            f"there is no '{attribute}' in it", where=module_name, hint=did_you_mean(attribute, public)
        ) from None


def _load_file(path: Path) -> Any:
    if not path.is_file():
        raise PolicyError("there is no such file", where=str(path))
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location(f"pipistrelle_user_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise PolicyError("this is no Python file", where=str(path))
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _call(factory: Any, name: str) -> Any:
    try:
        return factory()
    except Exception as error:  # the user's code again
        raise PolicyError(
            f"cannot make the policy ({type(error).__name__}: {error})",
            where=name,
            expected="a class or function that needs no arguments",
        ) from error

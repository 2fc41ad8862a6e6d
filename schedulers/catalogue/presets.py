"""Presets: policies described by TOML files; the package includes some."""

from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from pipistrelle.protocol.base.shapes import misfit
from pipistrelle.protocol.base.toml import read_toml
from pipistrelle.schedulers.catalogue.foreign import read_text
from pipistrelle.schedulers.catalogue.names import SUFFIX, library_names
from pipistrelle.schedulers.catalogue.parts import make_backfill, make_order, make_placement
from pipistrelle.schedulers.partitions.placement import PartitionOptions
from pipistrelle.schedulers.policy.errors import PolicyError
from pipistrelle.schedulers.preemption.options import PreemptionOptions, PreemptionRules

_MANUAL: Final = "'pipistrelle help scheduling' lists every key."


class Preset(Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """The keys of a preset's TOML file, all optional.

    The three ``*_options`` tables have the options of the parts. ``reliability`` divides the nodes into partitions of
    different reliability, and assigns jobs to them. ``preemption`` lets some jobs preempt others.
    """

    description: str = ""
    order: str = "fcfs"
    backfill: str = "none"
    placement: str = "lowest"
    order_options: dict[str, Any] = field(default_factory=dict)
    backfill_options: dict[str, Any] = field(default_factory=dict)
    placement_options: dict[str, Any] = field(default_factory=dict)
    reliability: PartitionOptions | None = None
    preemption: PreemptionOptions | None = None

    @property
    def parts(self) -> dict[str, str]:
        """Return the names of the three parts.

        The result is {``order``, ``backfill`` and ``placement``: name}.
        """
        return {"order": self.order, "backfill": self.backfill, "placement": self.placement}


@cache
def library() -> dict[str, Preset]:
    """Return {name: preset} of the package's presets."""
    return {name: library_preset(name) for name in library_names()}


@cache
def library_preset(name: str) -> Preset:
    """Return one of the package's presets."""
    file = files("pipistrelle.schedulers") / "library" / f"{name}{SUFFIX}"
    return parse_preset(file.read_text(encoding="utf-8"), f"{name}{SUFFIX}")


def read_preset(path: Path) -> Preset:
    """Return the preset in a user's file.

    Raise the errors of `parse_preset`.
    """
    return parse_preset(*read_text(path, PolicyError))


def parse_preset(text: str, where: str) -> Preset:
    """Return the preset in a TOML text; ``where`` is its name in messages.

    Raises:
        PolicyError: invalid TOML (with line and column), or an unknown key, part, option or value.
        FormulaError: invalid formula.
    """
    raw = read_toml(text, where, PolicyError, manual=_MANUAL, hint='Texts need quotes, as in order = "fcfs".')
    try:
        preset = msgspec.convert(raw, Preset)
    except msgspec.ValidationError as error:
        raise misfit(error, raw, Preset, where, PolicyError, _MANUAL) from None
    make_order(preset.order, preset.order_options, where)  # raises if it is invalid
    make_backfill(preset.backfill, preset.backfill_options, where)
    make_placement(preset.placement, preset.placement_options, where)
    if preset.preemption is not None:
        PreemptionRules(preset.preemption, where)
    return preset

"""Policies as files: an order, a backfilling rule and a placement in TOML; those of the library have names."""

from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from pipistrelle.protocol.base.errors import printable
from pipistrelle.protocol.base.shapes import misfit
from pipistrelle.protocol.base.toml import read_toml
from pipistrelle.schedulers.catalogue.names import SUFFIX, library_names
from pipistrelle.schedulers.catalogue.parts import make_backfill, make_order, make_placement
from pipistrelle.schedulers.partitions.placement import PartitionOptions
from pipistrelle.schedulers.policy.errors import PolicyError
from pipistrelle.schedulers.preemption.options import PreemptionOptions, PreemptionRules

_MANUAL: Final = "'pipistrelle help scheduling' lists every key."


class Preset(Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """What a policy is made of: the keys of its file, none of which must be there.

    The three tables are for the options of an order, a backfilling rule and a placement that have some; a table
    ``reliability`` has jobs keep to partitions by reliability, one ``preemption`` lets jobs preempt others.
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
        """The part on each axis."""
        return {"order": self.order, "backfill": self.backfill, "placement": self.placement}


@cache
def library() -> dict[str, Preset]:
    """Return {name: preset} of those that come with the package, by name."""
    return {name: library_preset(name) for name in library_names()}


@cache
def library_preset(name: str) -> Preset:
    """Return one that comes with the package; most runs need no other."""
    file = files("pipistrelle.schedulers") / "library" / f"{name}{SUFFIX}"
    return parse_preset(file.read_text(encoding="utf-8"), f"{name}{SUFFIX}")


def read_preset(path: Path) -> Preset:
    """Return the preset in a user's file.

    Raises
    ------
    PolicyError
        if the file cannot be read, or as `parse_preset` does.
    """
    where = printable(str(path))
    try:
        text = path.read_text(encoding="utf-8-sig")  # some editors begin a file with a mark
    except FileNotFoundError:
        raise PolicyError("there is no such file", where=where) from None
    except OSError as error:
        raise PolicyError(f"cannot read the file ({error.strerror or error})", where=where) from None
    except UnicodeDecodeError as error:
        raise PolicyError("the file is not UTF-8 text", where=f"{where}, byte {error.start}") from None
    except ValueError as error:  # a null character in the name
        raise PolicyError(f"cannot read the file ({error})", where=where) from None
    return parse_preset(text, where)


def parse_preset(text: str, where: str) -> Preset:
    """Return the preset that a TOML text describes.

    Parameters
    ----------
    text
        the whole file: ``description``, ``order``, ``backfill`` and ``placement``, each a text, and the tables
        ``order-options``, ``backfill-options``, ``placement-options``, ``reliability`` and ``preemption``, all
        optional.
    where
        what the text is called in messages, usually the file's name.

    Raises
    ------
    PolicyError
        if it is no TOML (with line and column), has an unknown key or a value of the wrong type, or names a part or an
        option that there is not; the message names the closest.
    FormulaError
        if a formula in it cannot be read.
    """
    raw = read_toml(text, where, PolicyError, manual=_MANUAL, hint='Texts need quotes, as in order = "fcfs".')
    try:
        preset = msgspec.convert(raw, Preset)
    except msgspec.ValidationError as error:
        raise misfit(error, raw, Preset, where, PolicyError, _MANUAL) from None
    make_order(preset.order, preset.order_options, where)  # to see whether it can be made
    make_backfill(preset.backfill, preset.backfill_options, where)
    make_placement(preset.placement, preset.placement_options, where)
    if preset.preemption is not None:
        PreemptionRules(preset.preemption, where)
    return preset

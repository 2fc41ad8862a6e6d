"""What can be named: the parts of policies, and schedulers; a command line needs no more to be read or explained."""

import os.path
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

#: {axis: {part: its module, what makes it, and the table of its options if it has some}};
#: `pipistrelle.schedulers.catalogue.parts` makes them, and imports none that is not needed
PARTS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "order": {
        "fcfs": ("orders.fixed", "Fcfs"),
        "sjf": ("orders.fixed", "Sjf"),
        "bins": ("orders.bins", "Bins", "BinsOptions"),
        "maui": ("orders.maui", "configured", "MauiOptions"),
        "pbs": ("orders.pbs", "PbsOrder", "PbsOptions"),
    },
    "backfill": {
        "none": ("backfill.easy", "NoBackfill"),
        "firstfit": ("backfill.easy", "FirstFit"),
        "easy": ("backfill.easy", "Easy"),
        "easy-sjbf": ("backfill.easy", "ShortestFirst"),
        "easy-slices": ("backfill.easy_slices", "EasySlices"),
        "conservative": ("backfill.conservative", "Conservative"),
        "depth": ("pbs.backfill", "Depth", "DepthOptions"),
        "fill": ("backfill.fills", "Fill", "FillOptions"),
    },
    "placement": {
        "lowest": ("placement.ordered", "lowest", "LineOptions"),
        "pack": ("placement.within_nodes", "Pack", "LineOptions"),
        "spread": ("placement.within_nodes", "Spread", "LineOptions"),
        "contiguous": ("placement.contiguous", "Contiguous", "ContiguousOptions"),
        "best-fit": ("placement.contiguous", "BestFit", "LineOptions"),
        "random": ("placement.scattered", "Random", "RandomOptions"),
        "compact": ("placement.compact", "Compact", "CompactOptions"),
    },
}
#: of a preset's file
SUFFIX: Final = ".toml"
#: the file of a folder with a scheduler in another language
FOREIGN_FILE: Final = "scheduler.toml"
#: stands for the address of the server in a program's words
PLACEHOLDER: Final = "{endpoint}"
#: other packages' schedulers are entry points of this group
GROUP: Final = "pipistrelle.schedulers"
#: the scheduler that does as the log says
RECORDED: Final = "recorded"
#: {scheduler that is more than a composition: what it is}
OWN: Final = {
    "maui": "A centre's own maui.cfg: priorities, fairshare, limits, reservations, backfilling",
    RECORDED: "What really happened: the starts of the log itself, and its nodes where it has them",
}


@cache
def library_names() -> tuple[str, ...]:
    """Return the names of the presets that come with the package, sorted."""
    from importlib.resources import files  # costs more than all the rest here

    folder = files("pipistrelle.schedulers") / "library"
    return tuple(sorted(entry.name.removesuffix(SUFFIX) for entry in folder.iterdir() if entry.name.endswith(SUFFIX)))


def is_ours(name: str) -> bool:
    """Tell whether a scheduler is made of code of ours alone: a preset or ``maui``."""
    return name in library_names() or name in OWN or name.endswith(SUFFIX)


def entries() -> "dict[str, EntryPoint]":
    """Return {name: entry point} of the schedulers of other packages; none of them takes a name of the library."""
    from importlib.metadata import entry_points  # looks through all that is installed: runs of our own need it not

    return {point.name: point for point in entry_points(group=GROUP) if point.name not in {*library_names(), *OWN}}


def registered() -> list[str]:
    """Return the names of the library's schedulers and of those of other packages, sorted."""
    return sorted({*library_names(), *OWN, *entries()})


def is_foreign(text: str) -> bool:
    """Tell whether a text names a folder with a scheduler in another language: what is registered comes first."""
    return os.path.isfile(os.path.join(text, FOREIGN_FILE)) and text not in registered()


def is_policy_name(text: str) -> bool:
    """Tell whether a text names a scheduler: registered, a TOML file or a folder, or an object (``module:name``).

    A path may have spaces in it, as a whole command in one word has; that one has the placeholder, or no such file.
    """
    if PLACEHOLDER in text:
        return False
    where, mark, _ = text.rpartition(":")
    spaced = any(character.isspace() for character in text)
    an_object = mark and "://" not in text and (not spaced or (where.endswith(".py") and os.path.isfile(where)))
    return bool(an_object) or is_foreign(text) or is_ours(text) or text in registered()

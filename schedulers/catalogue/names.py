"""Names of schedulers and of their parts.

Importing this module imports no other module of the package.
"""

import os.path
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

#: most bytes of a Python file that are searched for classes
_MOST_PARSED: Final = 1 << 20
#: {axis: {part: module, class or function, type of its options if any}}; `catalogue.parts` imports them when needed
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
        "easy-fixed": ("backfill.easy", "FixedReservation"),
    },
    "placement": {
        "lowest": ("placement.ordered", "lowest", "LineOptions"),
        "pack": ("placement.within_nodes", "Pack", "LineOptions"),
        "spread": ("placement.within_nodes", "Spread", "LineOptions"),
        "contiguous": ("placement.contiguous", "Contiguous", "ContiguousOptions"),
        "best-fit": ("placement.contiguous", "BestFit", "LineOptions"),
        "random": ("placement.scattered", "Random", "RandomOptions"),
        "compact": ("placement.compact", "Compact", "CompactOptions"),
        "first-fit": ("sharing.placing", "first_fit"),
        "worst-fit": ("sharing.placing", "worst_fit"),
        "dot-product": ("sharing.placing", "dot_product"),
        "gpu-packing": ("sharing.placing", "gpu_packing"),
        "gpu-clustering": ("sharing.placing", "gpu_clustering"),
        "fgd": ("sharing.placing", "fgd"),
    },
}
#: placements for machines whose units are not shared; the other placements are for nodes that jobs share
ON_UNITS: Final = tuple(name for name, (module, *_) in PARTS["placement"].items() if not module.startswith("sharing."))
#: suffix of preset files
SUFFIX: Final = ".toml"
#: file in the folder of a scheduler in another language
FOREIGN_FILE: Final = "scheduler.toml"
#: placeholder for the server's address in command lines
PLACEHOLDER: Final = "{endpoint}"
#: entry point group of other packages' schedulers
GROUP: Final = "pipistrelle.schedulers"
#: the scheduler that repeats the log
RECORDED: Final = "recorded"
#: an unmodified slurmctld, which runs in a process of its own
SLURMCTLD: Final = "slurmctld"
#: {scheduler that is not a composition: description}
OWN: Final = {
    "maui": "Maui with a maui.cfg: priorities, fairshare, limits, reservations, backfilling",
    "slurm": "Slurm 22.05 with a slurm.conf: main loop and backfill passes, multifactor priorities, limits, preemption",
    SLURMCTLD: "The distribution's own slurmctld 22.05 with a slurm.conf, unmodified, in virtual time",
    RECORDED: "The log itself: its recorded starts, and its recorded nodes if it has them",
}


@cache
def library_names() -> tuple[str, ...]:
    """Return the names of the package's presets, sorted."""
    from importlib.resources import files  # a slow import

    folder = files("pipistrelle.schedulers") / "library"
    return tuple(sorted(entry.name.removesuffix(SUFFIX) for entry in folder.iterdir() if entry.name.endswith(SUFFIX)))


def is_ours(name: str) -> bool:
    """Return whether a scheduler consists only of code of this package."""
    return name in library_names() or name in OWN or name.endswith(SUFFIX)


def entries() -> "dict[str, EntryPoint]":
    """Return {name: entry point} of the schedulers that other packages register.

    Names that this package itself uses are left out.
    """
    from importlib.metadata import entry_points  # scans all installed packages, so import it only if needed

    return {point.name: point for point in entry_points(group=GROUP) if point.name not in {*library_names(), *OWN}}


def registered() -> list[str]:
    """Return the names of the library's and other packages' schedulers, sorted."""
    return sorted({*library_names(), *OWN, *entries()})


def is_foreign(text: str) -> bool:
    """Return whether a text names the folder of a scheduler in another language.

    A registered name does not count, even if a folder has that name.
    """
    return os.path.isfile(os.path.join(text, FOREIGN_FILE)) and text not in registered()


def is_policy_name(text: str) -> bool:
    """Return whether a text names a scheduler.

    It may be a registered name, a file, a folder, or an object as ``module:name``. A text with spaces is either a path
    or the command line of a program. It counts as a command, not a name, if it contains ``{endpoint}`` or if no such
    file exists.
    """
    if PLACEHOLDER in text:
        return False
    where, mark, _ = text.rpartition(":")
    spaced = any(character.isspace() for character in text)
    an_object = mark and "://" not in text and (not spaced or (where.endswith(".py") and os.path.isfile(where)))
    return bool(an_object) or is_foreign(text) or is_ours(text) or text in registered()


def classes_in(name: str) -> str:
    """Return a hint with at most three classes of a Python file, as ``FILE.py:CLASS``.

    Return "" if ``name`` is not a Python file. The file is parsed, not run. If it cannot be read or parsed, or has no
    classes, the hint has the placeholder ``CLASS``.
    """
    if not (name.endswith(".py") and os.path.isfile(name)):
        return ""
    import ast  # needed only for errors

    try:
        with open(name, "rb") as file:
            body = ast.parse(file.read(_MOST_PARSED)).body
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        body = []
    classes = [statement.name for statement in body if isinstance(statement, ast.ClassDef)]
    shown = " or ".join(f"{name}:{one}" for one in classes[:3]) or f"{name}:CLASS"
    return f"To run a class of this file, name it: {shown}."

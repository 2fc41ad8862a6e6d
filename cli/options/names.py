"""Names of bundled files, for shell completion and ``pipistrelle show``."""

from collections.abc import Callable
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

import click
from click.shell_completion import CompletionItem

from pipistrelle.schedulers.catalogue.names import PARTS, registered

#: {kind: (package with its library, suffix of its files)}
_LIBRARIES: Final = {
    "platform": ("pipistrelle.platforms", ".toml"),
    "scheduler": ("pipistrelle.schedulers", ".toml"),
    "workload": ("pipistrelle.traces", ".swf.gz"),
    "failures": ("pipistrelle.platforms.failures", ".toml"),
    "classes": ("pipistrelle.models.workloads", ".toml"),
    "model": ("pipistrelle.models.likeness", ".toml"),
}
KINDS: Final = tuple(_LIBRARIES)
#: {folder of pages: heading}
PAGE_PARTS: Final = {
    "tutorials": "Tutorials",
    "how-to": "How-to guides",
    "reference": "Reference",
    "explanation": "Explanation",
}
Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def library(kind: str) -> dict[str, Traversable]:
    """Return {name: file} of all bundled files of one kind, sorted by name.

    An example of ``kind`` is "platform".
    """
    package, suffix = _LIBRARIES[kind]
    entries = [entry for entry in (files(package) / "library").iterdir() if entry.name.endswith(suffix)]
    return {entry.name.removesuffix(suffix): entry for entry in sorted(entries, key=lambda entry: entry.name)}


def pages() -> dict[str, Path]:
    """Return {name: file} of the documentation pages.

    The index is first. Then come tutorials, how-to, reference and explanation; names in each part are sorted.
    """
    folder = Path(__file__).resolve().parents[2] / "docs"
    found = [folder / "index.md", *(path for part in PAGE_PARTS for path in sorted((folder / part).glob("*.md")))]
    return {path.stem: path for path in found}


def names(kind: str) -> list[str]:
    """Return all names of one kind.

    Shells offer them as completions of an option or argument. The kind is one in `KINDS` (bundled inputs) or in `PARTS`
    (parts of schedulers), or ``page`` (documentation pages).
    """
    if kind in PARTS:
        return list(PARTS[kind])
    if kind == "page":
        return list(pages())
    return registered() if kind == "scheduler" else list(library(kind))


def completed(*kinds: str, or_file: bool = False) -> Complete:
    """Return a function with which shells complete the value of an option or argument.

    Args:
        kinds: the kinds of names that it offers, as in `names`.
        or_file: whether it offers file names, too.
    """

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        found = [CompletionItem(name) for kind in kinds for name in names(kind) if name.startswith(incomplete)]
        return [*found, CompletionItem(incomplete, type="file")] if or_file else found

    return complete

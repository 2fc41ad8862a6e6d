"""Options that say which files are read, how, and which are written."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from pipistrelle.cli.options.fields import added, options_of
from pipistrelle.cli.terminal.guard import FILE
from pipistrelle.runs.description.spec import RunSpec

_C = TypeVar("_C", bound=Callable[..., Any])

_READING: Final = {
    "sort": "Accept an SWF log whose submit times are not ascending, and sort it.",
    "units": "What sizes count in a log of PBS, Slurm or Maui.",
    "timezone": "ZONE\tZone of such a log's clock, as Europe/Prague; default: UTC.",
    "columns": "NAMES\tColumns of what sacct printed without a header: JobID,Submit,Elapsed,...",
}
reading_options: Final = added(options_of(RunSpec, _READING))
strict_option: Final = added(options_of(RunSpec, {"strict": "Refuse a log of PBS with a record that cannot be read."}))
#: the same for commands in which a time zone is that of dates, too, and has a text of its own
reading_but_zone: Final = added(
    options_of(RunSpec, {name: text for name, text in _READING.items() if name != "timezone"})
)


def output_option(text: str, *, required: bool = True) -> Callable[[_C], _C]:
    """Return the option that names the file to write."""
    return click.option("-o", "--output", "--out", "output", type=FILE, required=required, help=text)

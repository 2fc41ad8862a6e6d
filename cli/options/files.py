"""Options for input and output files."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from pipistrelle.cli.options.fields import added, options_of
from pipistrelle.cli.terminal.guard import FILE
from pipistrelle.runs.description.spec import RunSpec

_C = TypeVar("_C", bound=Callable[..., Any])

_READING: Final = {
    "sort": "Sort an SWF log by submit time (without this option, it must be sorted).",
    "units": "With a PBS, Slurm or Maui log: unit in which job sizes are counted.",
    "timezone": "ZONE\tTime zone of the log, such as Europe/Prague.\tUTC",
    "columns": "NAMES\tColumn names of sacct output without a header line, such as 'JobID,Submit,Elapsed'.",
}
reading_options: Final = added(options_of(RunSpec, _READING))
strict_option: Final = added(options_of(RunSpec, {"strict": "Reject a PBS log with unreadable records."}))
#: without --timezone, for commands that define it themselves
reading_but_zone: Final = added(
    options_of(RunSpec, {name: text for name, text in _READING.items() if name != "timezone"})
)


def output_option(text: str, *, required: bool = True, **settings: Any) -> Callable[[_C], _C]:
    """Return the option ``--output`` for a file; ``text`` is its help."""
    return click.option("-o", "--output", "--out", "output", type=FILE, required=required, help=text, **settings)


def csv_option(text: str) -> Callable[[_C], _C]:
    """Return the option ``--csv``, which names a file for a table.

    ``text`` is its help.
    """
    return click.option("--csv", "as_csv", type=FILE, metavar="FILE.csv", help=text)


all_json_option: Final = click.option("--json", "as_json", is_flag=True, help="Print all results as JSON.")
json_option: Final = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")

"""``pipistrelle slurm check``: compare scheduler ``slurm`` with a recording.

The recording is of the real slurmctld.
"""

from pathlib import Path

import click

from pipistrelle.cli.options.files import csv_option, json_option
from pipistrelle.cli.options.sections import OUTPUTS, Command, in_section
from pipistrelle.cli.terminal.console import import_numpy, print_json, print_table, show
from pipistrelle.cli.terminal.guard import FILE, refuse_overwriting
from pipistrelle.protocol.base.log import logger

_MOST = 5


@click.command(cls=Command)
@click.argument("folder", type=click.Path(path_type=Path))
@in_section(
    OUTPUTS,
    json_option,
    csv_option("Also write a CSV file, one line per start of a job."),
    click.option("--page", type=FILE, metavar="FILE.html", help="Also write the comparison as an HTML page."),
)
def command(folder: Path, as_json: bool, as_csv: Path | None, page: Path | None) -> None:
    """Compare Pipistrelle's scheduler 'slurm' with a recording of the real slurmctld.

    FOLDER is a recording that 'pipistrelle slurm record' wrote. The comparison has three parts:

    \b
    1. Each scheduling pass (main loop or backfill) is repeated from the
       recorded queue and nodes. Started jobs, reservations and
       priorities are compared.
    2. All jobs are simulated, beginning with an empty machine, and their
       starts are compared. How long nodes stay busy after the end of
       each job is taken from the recording.
    3. As 2, but how long nodes stay busy is modelled, as in
       'pipistrelle run'.

    \b
    pipistrelle slurm check recording --page check.html
    """
    files = [str(path) for path in folder.iterdir()] if folder.is_dir() else []
    refuse_overwriting(files, [as_csv, page])
    import_numpy()
    from pipistrelle.reports.page.slurm_check import slurm_check_page
    from pipistrelle.reports.report.slurm_check import SlurmCheckTexts
    from pipistrelle.runs.recordings.check import check_recording
    from pipistrelle.server.outputs.once import write_output

    texts = SlurmCheckTexts(check_recording(folder, lambda text: logger().info("comparing: {}", text)))
    if as_csv is not None:
        write_output(as_csv, texts.csv(), "--csv")
    if page is not None:
        write_output(page, slurm_check_page(texts), "--page")
    if as_json:
        print_json(texts.json())
        return
    print_table(texts.title, texts.agreement_columns, texts.agreements(), {"compared"})
    if waits := texts.waits():
        print_table("Mean waits (s)", texts.wait_columns, waits, {"jobs of"})
    show("First differences", "bold")
    for line in texts.differences(_MOST):
        show(f"  {line}")

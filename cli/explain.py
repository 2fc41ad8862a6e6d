"""``pipistrelle explain``: why a job of a run waited."""

import json
from pathlib import Path

import click

from pipistrelle.cli.guard import FilledPath
from pipistrelle.protocol.base.lengths import seconds_of


def _moment(ctx: click.Context, param: click.Parameter, text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return seconds_of(text.removesuffix(" s"))
    except ValueError as error:
        raise click.BadParameter(f"'{text}' is no time: {error}.", ctx, param) from None


@click.command()
@click.argument("run", type=FilledPath(path_type=Path))
@click.argument("job")
@click.option(
    "--at", callback=_moment, metavar="TIME", help="Show one moment: seconds since time 0, or as 36h or 12:30:00."
)
@click.option("--json", "as_json_", is_flag=True, help="Write JSON, all of it.")
@click.option(
    "--no-replay",
    is_flag=True,
    help="Explain from the outputs alone, without repeating the run to see what its scheduler saw.",
)
def command(run: Path, job: str, at: float | None, as_json_: bool, no_replay: bool) -> None:
    """Explain why a job of a run waited.

    RUN is the folder of a run's outputs, JOB an id as in out_decisions.csv, or without its prefix.

    \b
    pipistrelle explain pipistrelle-out/demo-easy-1 w0!17
    """
    # Here and below, not above: help needs none of these, and an explanation without a replay not all.
    from pipistrelle.studies.explain.account import account
    from pipistrelle.studies.explain.explanation import as_json
    from pipistrelle.studies.explain.files import read_run

    files = read_run(run)
    explanation, look = account(files, job, at, repeat=not no_replay)
    if as_json_:
        click.echo(json.dumps(as_json(explanation, look), indent=2, allow_nan=False))
    else:
        from rich.console import Console

        from pipistrelle.cli.explain_text import print_explanation

        print_explanation(explanation, at, look, Console(highlight=False, emoji=False))

"""``pipistrelle explain``: why a job of a run waited, or the jobs of a user, a group or a queue."""

import json
from pathlib import Path

import click

from pipistrelle.cli.guard import FilledPath
from pipistrelle.cli.options.fields import TimeOfRun
from pipistrelle.cli.options.sections import Command


@click.command(cls=Command)
@click.argument("run", type=FilledPath(path_type=Path))
@click.argument("job", required=False)
@click.option("--user", metavar="NAME", help="Shares of the waits of this user's jobs by reason.")
@click.option("--group", metavar="NAME", help="Those of this group's jobs.")
@click.option("--account", metavar="NAME", help="Those of this account's jobs.")
@click.option("--queue", metavar="NAME", help="Those of this queue's jobs.")
@click.option("--qos", metavar="NAME", help="Those of this QOS's jobs.")
@click.option(
    "--at", type=TimeOfRun(), metavar="TIME", help="Show one moment: seconds since time 0, or as 36h or 12:30:00."
)
@click.option("--json", "as_json_", is_flag=True, help="Write JSON, all of it.")
@click.option(
    "--no-replay",
    is_flag=True,
    help="Explain from the outputs alone, without repeating the run to see what its scheduler saw.",
)
@click.option(
    "--trust",
    is_flag=True,
    help="Let Python code run that the folder names as the run's scheduler, as file.py:CLASS.",
)
def command(
    run: Path, job: str | None, at: float | None, as_json_: bool, no_replay: bool, trust: bool, **labels: str | None
) -> None:
    """Explain why a job of a run waited, or why the jobs of a user, a group or a queue did.

    RUN is the folder of a run's outputs, JOB an id as in out_decisions.csv, or without its prefix. The first call
    repeats the run and keeps what it saw in out_explain.index beside the outputs; the others read that.

    \b
    pipistrelle explain pipistrelle-out/demo-easy-1 w0!17
    pipistrelle explain pipistrelle-out/demo-easy-1 --user 3
    """
    of = {name: value for name, value in labels.items() if value is not None}
    if (job is None) != bool(of):
        raise click.UsageError("name either a JOB, or whose jobs by --user, --group, --account, --queue or --qos.")
    if of and at is not None:
        raise click.UsageError("--at shows one moment of one JOB.")
    # Here and below, not above: help needs none of these, and an explanation without a replay not all.
    from pipistrelle.studies.explain.index import open_index

    if job is None:
        _print_shares(run, of, as_json_, no_replay, trust)
        return
    from pipistrelle.studies.explain.account import account
    from pipistrelle.studies.explain.explanation import as_json

    def wanted(one: str, _: object) -> bool:
        return job in (one, one.partition("!")[2])

    index = open_index(run, repeat=not no_replay, wanted=wanted, trust=trust)
    explanation, look = account(index, job, at)
    if as_json_:
        click.echo(json.dumps(as_json(explanation, look), indent=2, allow_nan=False))
    else:
        from rich.console import Console

        from pipistrelle.cli.explain_text import print_explanation

        print_explanation(explanation, at, look, Console(highlight=False, emoji=False))


def _print_shares(run: Path, of: dict[str, str], as_json: bool, no_replay: bool, trust: bool) -> None:
    import msgspec

    from pipistrelle.studies.explain.index import open_index
    from pipistrelle.studies.explain.shares import chosen, shares

    index = open_index(run, repeat=not no_replay, wanted=lambda _, its: chosen(of, its), trust=trust)
    found = shares(index, of)
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(found), indent=2, allow_nan=False))
    else:
        from rich.console import Console

        from pipistrelle.cli.explain_text import print_shares

        print_shares(found, Console(highlight=False, emoji=False))

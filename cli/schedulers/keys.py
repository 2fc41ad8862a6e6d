"""``pipistrelle new keys``: create keys for encrypted connections."""

from pathlib import Path

import click

from pipistrelle.cli.options.sections import OUTPUTS, Command, in_section


@click.command(cls=Command)
@click.argument("folder", metavar="[DIR]", type=click.Path(path_type=Path), default=Path())
@in_section(
    OUTPUTS,
    click.option(
        "--name",
        "names",
        multiple=True,
        default=("server", "scheduler"),
        show_default="server and scheduler",
        help="Name of a key pair: NAME.key is private, NAME.pub public; repeatable.",
    ),
)
def command(folder: Path, names: tuple[str, ...]) -> None:
    """Create keys for a scheduler on another machine.

    Write two files for each NAME to the folder DIR: NAME.key, a private key that only you can read, and NAME.pub, the
    public key. Existing files are never overwritten. The following commands make keys of the names 'server' and
    'scheduler' in the folder 'keys', and use them:

    \b
    pipistrelle new keys keys
    pipistrelle serve --endpoint 'tcp://*:28000' \\
      --curve keys/server.key --clients keys
    pipistrelle schedule easy --connect tcp://HOST:28000 \\
      --curve keys/scheduler.key --server-key keys/server.pub
    """
    from pipistrelle.runs.inputs.keys import PRIVATE, make_keys

    for path in make_keys(folder, names):
        click.echo(f"{path}: {'private, readable by its owner only' if path.suffix == PRIVATE else 'public'}")

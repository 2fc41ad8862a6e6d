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

    Write two files for each --name to the folder DIR: NAME.key, a private key that only you can read, and NAME.pub, the
    public key. Without --name, the names are 'server' and 'scheduler'. Existing files are never overwritten. The
    following commands make both pairs in the folder 'my-keys', and use them:

    \b
    pipistrelle new keys my-keys
    pipistrelle serve --endpoint 'tcp://*:28000' \\
      --curve my-keys/server.key --clients my-keys
    pipistrelle schedule easy --connect tcp://HOST:28000 \\
      --curve my-keys/scheduler.key --server-key my-keys/server.pub
    """
    from pipistrelle.runs.inputs.keys import PRIVATE, make_keys

    for path in make_keys(folder, names):
        click.echo(f"{path}: {'private, readable by its owner only' if path.suffix == PRIVATE else 'public'}")

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
        help="What to call a pair of keys; may be repeated.",
    ),
)
def command(folder: Path, names: tuple[str, ...]) -> None:
    """Make keys for a scheduler on another machine.

    Writes NAME.key, a private key that you alone can read, and NAME.pub, the public one, to DIR (default: the present
    folder). No file is ever written over.

    \b
    pipistrelle new keys keys
    pipistrelle serve --endpoint 'tcp://*:28000' \\
      --curve keys/server.key --clients keys
    pipistrelle schedule easy --connect tcp://HOST:28000 \\
      --curve keys/scheduler.key --server-key keys/server.pub
    """
    from pipistrelle.runs.inputs.keys import PRIVATE, make_keys

    for path in make_keys(folder, names):
        click.echo(f"{path}: {'private, for its owner alone' if path.suffix == PRIVATE else 'public'}")

"""Options of connections that are encrypted, and of those that are not and reach beyond this machine."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from pipistrelle.cli.options.fields import together
from pipistrelle.cli.terminal.guard import FILE_OR_FOLDER

if TYPE_CHECKING:
    from pipistrelle.protocol.sockets import CallerKeys, ListenerKeys

#: for a side that listens
listening_options: Final = together(
    click.option(
        "--curve",
        metavar="FILE",
        type=FILE_OR_FOLDER,
        help="Encrypt the connection (CurveZMQ): one's own private key, made by 'pipistrelle new keys'.",
    ),
    click.option(
        "--clients",
        metavar="DIR",
        type=FILE_OR_FOLDER,
        help="With --curve, for who listens: the folder of the public keys of those who may come; "
        "default: whoever knows the listener's.",
    ),
)
#: for a side that may do either, as its dialect has it
curve_options: Final = together(
    listening_options,
    click.option(
        "--server-key",
        metavar="FILE",
        type=FILE_OR_FOLDER,
        help="With --curve, for who connects: the public key of who listens.",
    ),
)


def listening_keys(
    curve: Path | None, clients: Path | None, server_key: Path | None, *, insecure: bool
) -> "ListenerKeys | None":
    """Return the keys of a side that listens, None without --curve.

    Raises
    ------
    UsageError
        for options that do not go together.
    KeyFileError
        when a file of a key is wrong.
    """
    _check(curve, clients, server_key, insecure=insecure)
    if server_key is not None:
        raise click.UsageError("--server-key is for the side that connects: this one listens, with --clients DIR.")
    if curve is None:
        return None
    from pipistrelle.runs.inputs.keys import listener_keys  # most runs need none

    return listener_keys(curve, clients)


def calling_keys(
    curve: Path | None, clients: Path | None, server_key: Path | None, *, insecure: bool
) -> "CallerKeys | None":
    """Return the keys of a side that connects, None without --curve; errors as of `listening_keys`."""
    _check(curve, clients, server_key, insecure=insecure)
    if clients is not None:
        raise click.UsageError("--clients is for the side that listens: this one connects, with --server-key FILE.")
    if curve is None:
        return None
    if server_key is None:
        raise click.UsageError("--curve needs --server-key FILE: the public key of who listens.")
    from pipistrelle.runs.inputs.keys import caller_keys

    return caller_keys(curve, server_key)


def _check(curve: Path | None, clients: Path | None, server_key: Path | None, *, insecure: bool) -> None:
    if curve is None and (clients or server_key):
        raise click.UsageError("--clients and --server-key go with --curve.")
    if curve is not None and insecure:
        raise click.UsageError("--insecure does without the keys that --curve names: leave one of the two out.")

"""Options for encrypted connections."""

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
        help="Encrypt with the private key in FILE, which 'pipistrelle new keys' made.",
    ),
    click.option(
        "--clients",
        metavar="DIR",
        type=FILE_OR_FOLDER,
        help="With --curve: accept only connections with a public key in DIR.",
    ),
)
#: for a side that listens or connects, depending on its dialect
curve_options: Final = together(
    listening_options,
    click.option(
        "--server-key",
        metavar="FILE",
        type=FILE_OR_FOLDER,
        help="With --curve: file with the public key of the side that listens.",
    ),
)


def listening_keys(
    curve: Path | None, clients: Path | None, server_key: Path | None, *, insecure: bool
) -> "ListenerKeys | None":
    """Read the keys of the side that listens; return None without --curve.

    Raises:
        UsageError: if the options conflict.
        KeyFileError: if a key file is not valid.
    """
    _check(curve, clients, server_key, insecure=insecure)
    if server_key is not None:
        raise click.UsageError(
            "--server-key is for the side that connects. This side listens: give --clients DIR instead."
        )
    if curve is None:
        return None
    from pipistrelle.runs.inputs.keys import listener_keys  # most runs need none

    return listener_keys(curve, clients)


def calling_keys(
    curve: Path | None, clients: Path | None, server_key: Path | None, *, insecure: bool
) -> "CallerKeys | None":
    """Read the keys of the side that connects.

    Return None without --curve. Raise the same errors as `listening_keys`.
    """
    _check(curve, clients, server_key, insecure=insecure)
    if clients is not None:
        raise click.UsageError(
            "--clients is for the side that listens. This side connects: give --server-key FILE instead."
        )
    if curve is None:
        return None
    if server_key is None:
        raise click.UsageError("--curve needs --server-key FILE: the public key of the listening side.")
    from pipistrelle.runs.inputs.keys import caller_keys

    return caller_keys(curve, server_key)


def _check(curve: Path | None, clients: Path | None, server_key: Path | None, *, insecure: bool) -> None:
    if curve is None and (clients or server_key):
        raise click.UsageError("--clients and --server-key need --curve.")
    if curve is not None and insecure:
        raise click.UsageError("--insecure and --curve exclude each other: omit one of them.")

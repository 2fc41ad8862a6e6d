"""Make and read key files for encrypted connections (CurveZMQ)."""

import os
import re
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import msgspec
import zmq
from msgspec import Meta, Struct

from pipistrelle.protocol.base.errors import PipistrelleError, printable
from pipistrelle.protocol.base.shapes import misfit
from pipistrelle.protocol.base.toml import read_toml
from pipistrelle.protocol.base.whole import write_together
from pipistrelle.protocol.sockets import CallerKeys, KeyPair, ListenerKeys
from pipistrelle.server.errors import OutputFailed

#: suffixes of the private and the public key file
PRIVATE: Final = ".key"
PUBLIC: Final = ".pub"
_MANUAL: Final = "See 'pipistrelle help remote'; 'pipistrelle new keys' makes keys."
_Z85: Final = r"^[0-9a-zA-Z.\-:+=^!/*?&<>()\[\]{}@%$#]{40}$"
_Key = Annotated[str, Meta(pattern=_Z85)]
_NAME: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,63}")
#: maximum bytes of a key file; real key files have about a hundred
_MOST_BYTES: Final = 4096
_OF_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_PRIVATE_TEXT: Final = """\
# A private key of Pipistrelle (CurveZMQ). Anyone who reads it can impersonate its owner. Keep it where it is used.
public = "{public}"
secret = "{secret}"
"""
_PUBLIC_TEXT: Final = """\
# A public key of Pipistrelle (CurveZMQ). Give it to those who should connect to its owner.
public = "{public}"
"""
_K = TypeVar("_K", bound=Struct)


class KeyFileError(PipistrelleError):
    """A key file is missing, malformed, or badly protected."""


class PrivateKeyFile(Struct, frozen=True, forbid_unknown_fields=True):
    """The fields of a private key file; each is 40 characters of Z85."""

    public: _Key
    secret: _Key


class PublicKeyFile(Struct, frozen=True, forbid_unknown_fields=True):
    """The field of a public key file."""

    public: _Key


def make_keys(folder: Path, names: Sequence[str]) -> list[Path]:
    """Make a key pair for each name; return the new files, NAME.key and NAME.pub.

    Only the owner can read NAME.key. After an error, no new file is left.

    Raises:
        KeyFileError: a name is invalid, or a file exists.
        OutputFailed: a file cannot be written.
    """
    for name in names:
        if not _NAME.fullmatch(name):
            raise KeyFileError(
                "a name of a key is not valid",
                where=printable(name),
                expected="up to 64 letters, digits, '.', '_' and '-', a letter or digit first",
            )
    paths = [folder / f"{name}{suffix}" for name in dict.fromkeys(names) for suffix in (PRIVATE, PUBLIC)]
    for path in paths:
        if os.path.lexists(path):
            raise KeyFileError(
                "the key exists already, and keys are never overwritten",
                where=printable(str(path)),
                hint="Choose another folder, or another name with --name.",
            )
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        made: list[tuple[Path, bytes, int]] = []
        for private, public in zip(paths[::2], paths[1::2], strict=True):
            pair = [key.decode() for key in zmq.curve_keypair()]
            made.append((private, _PRIVATE_TEXT.format(public=pair[0], secret=pair[1]).encode(), 0o600))
            made.append((public, _PUBLIC_TEXT.format(public=pair[0]).encode(), 0o644))
        write_together(made, fresh=True)
    except OSError as error:
        where = printable(str(error.filename or folder))
        raise OutputFailed(f"cannot write the keys ({error.strerror or error})", where=where) from error
    return paths


def read_private(path: Path) -> KeyPair:
    """Read the key pair in a private key file.

    Raises:
        KeyFileError: the file is unreadable or malformed, its keys do not match, or other users can read it.
    """
    text, rights = _text(path)
    found = _read(text, path, PrivateKeyFile)
    if rights & _OF_OTHERS:
        raise KeyFileError(
            "other users can read or change this private key",
            where=printable(str(path)),
            expected="access for its owner only",
            found=stat.filemode(rights),
            hint=f"Run 'chmod 600 {printable(str(path))}'. If someone may have read it, make new keys.",
        )
    keys = KeyPair(found.public.encode(), found.secret.encode())
    with suppress(zmq.ZMQError, ValueError):
        if zmq.curve_public(keys.secret) == keys.public:
            return keys
    raise KeyFileError("the public key does not match the secret one", where=printable(str(path)), hint=_MANUAL)


def read_public(path: Path) -> bytes:
    """Read the key in a public key file.

    Raise KeyFileError if unreadable or malformed.
    """
    return _read(_text(path)[0], path, PublicKeyFile).public.encode()


def read_known(folder: Path) -> frozenset[bytes]:
    """Read all public keys in a folder.

    Raise KeyFileError if a key is wrong or there are none.
    """
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix == PUBLIC)
    except OSError as error:
        where = printable(str(folder))
        raise KeyFileError(f"cannot read the folder of known keys ({error.strerror})", where=where) from None
    if not paths:
        raise KeyFileError(
            "the folder of known keys is empty, so nobody could connect",
            where=printable(str(folder)),
            expected=f"files *{PUBLIC}",
        )
    return frozenset(map(read_public, paths))


def listener_keys(own: Path, known: Path | None) -> ListenerKeys:
    """Read the keys of the listening side; raise KeyFileError if a file is wrong."""
    return ListenerKeys(read_private(own), None if known is None else read_known(known))


def caller_keys(own: Path, listener: Path) -> CallerKeys:
    """Read the keys of the connecting side; raise KeyFileError if a file is wrong."""
    return CallerKeys(read_private(own), read_public(listener))


def _text(path: Path) -> tuple[str, int]:
    where = printable(str(path))
    try:
        # With O_NONBLOCK, opening a pipe does not wait for a writer.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            kept = os.fstat(file.fileno())
            if not stat.S_ISREG(kept.st_mode):
                raise KeyFileError("this is not a regular file", where=where, hint=_MANUAL)
            raw = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise KeyFileError(f"cannot read the key ({error.strerror or error})", where=where, hint=_MANUAL) from None
    try:
        if len(raw) <= _MOST_BYTES:
            return raw.decode(), kept.st_mode
    except UnicodeDecodeError:
        pass
    raise KeyFileError("this is not a key", where=where, hint=_MANUAL)


def _read(text: str, path: Path, kind: type[_K]) -> _K:
    where = printable(str(path))
    raw: Any = read_toml(text, where, KeyFileError, manual=_MANUAL, hint=_MANUAL)
    secret = raw.get("secret") is not None
    if "public" in raw and secret != (kind is PrivateKeyFile):
        raise KeyFileError(
            "this is a private key, which only its owner should have" if secret else "this is a public key",
            where=where,
            expected=f"the {'public' if secret else 'private'} key, NAME{PUBLIC if secret else PRIVATE}",
        )
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        if "matching regex" in str(error):  # the message must not show a key
            raise KeyFileError(
                "this is not a key", where=where, expected="40 characters of Z85", hint=_MANUAL
            ) from None
        raise misfit(error, raw, kind, where, KeyFileError, _MANUAL) from None

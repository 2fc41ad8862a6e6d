"""Key files: invalid keys and unsafe permissions are reported."""

import os
from pathlib import Path

import pytest

from pipistrelle.runs.inputs.keys import KeyFileError, listener_keys, make_keys, read_known, read_private


@pytest.mark.parametrize(
    ("change", "fragments"),
    [
        (
            ("chmod", 0o640),
            ["k/server.key", "other users can read or change this private key", "found -rw-r-----", "chmod 600"],
        ),
        (("chmod", 0o602), ["other users can read or change this private key", "found -rw-----w-"]),
        (("remove",), ["k/server.key", "cannot read the key", "pipistrelle new keys"]),
        (("folder",), ["k/server.key", "cannot read the key"]),
        (("pipe",), ["k/server.key", "this is not a regular file"]),
        (("write", "public ="), ["this is not TOML"]),
        (("write", 'public = "x"\nsecret = "y"'), ["this is not a key", "40 characters of Z85"]),
        (("write", b"\xff" * 10), ["this is not a key"]),
        (("write", "x" * 9999), ["this is not a key"]),
        (("swap", "k/server.pub"), ["this is a public key", "expected the private key"]),
        (("mix", "x/server.key"), ["the public key does not match the secret one"]),
    ],
    ids=lambda value: "-".join(map(str, value))[:20] if isinstance(value, tuple) else "",
)
def test_unusable_private_key_is_reported(tmp_path: Path, monkeypatch, change, fragments):
    """The message says what to do, and shows no secret key."""
    monkeypatch.chdir(tmp_path)
    make_keys(Path("k"), ["server"])
    make_keys(Path("x"), ["server"])
    path = Path("k", "server.key")
    what, *value = change
    lines = path.read_text().splitlines()
    secret = lines[2].split('"')[1]
    if what == "chmod":
        path.chmod(value[0])
    else:
        path.unlink()
    if what == "folder":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "write":
        path.write_bytes(value[0] if isinstance(value[0], bytes) else value[0].encode())
    elif what == "swap":
        path.write_bytes(Path(value[0]).read_bytes())
    elif what == "mix":
        path.write_text("\n".join([lines[1], Path(value[0]).read_text().splitlines()[2]]))
    if what in {"write", "mix"}:
        path.chmod(0o600)
    with pytest.raises(KeyFileError) as caught:
        listener_keys(path, Path("k"))

    assert all(fragment in str(caught.value) for fragment in fragments), caught.value
    assert secret not in str(caught.value)


def test_known_keys_are_those_of_a_folder(tmp_path: Path):
    """Only public keys count; private ones beside them are not read."""
    make_keys(tmp_path, ["one", "two"])
    (tmp_path / "one.key").chmod(0o666)

    assert len(read_known(tmp_path)) == 2
    assert read_private(tmp_path / "two.key").public in read_known(tmp_path)

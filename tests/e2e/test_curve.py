"""A scheduler on another machine: keys, which peers are accepted, and what is rejected without keys."""

import stat

import pytest

from pipistrelle.runs.inputs.keys import make_keys

SERVER = ("--curve", "k/server.key", "--clients", "k")
SCHEDULER = ("--curve", "k/scheduler.key", "--server-key", "k/server.pub")
#: endpoints that are, or may be, on other machines
REMOTE = ("tcp://*:28000", "tcp://node7:28000")


@pytest.fixture
def keys(shell):
    """Make keys of a server, of a scheduler, and of an unknown peer whose public key is elsewhere."""
    make_keys(shell.folder / "k", ["server", "scheduler"])
    make_keys(shell.folder / "x", ["stranger", "server"])


def serve(shell, *arguments, endpoint="tcp://127.0.0.1:*"):
    """Start a server for the small workload; return it and its endpoint."""
    words = ("-p", "tiny", "-w", shell.small(), "--hello-timeout", "600", "--out", "out", "--endpoint", endpoint)
    server = shell.start("serve", *words, *arguments)
    return server, server.until("waiting for a scheduler").out.split()[2].rstrip(";")


def schedule(shell, *arguments):
    """Run a scheduler to its end."""
    return shell.run("schedule", "easy", "--hello-timeout", "600", *arguments)


def test_a_run_with_keys_has_the_same_bytes(shell, keys):
    """The outputs have the same bytes; the server is reachable from everywhere, and its connection file names it."""
    shell.run("run", "-p", "tiny", "-w", shell.small(), "--in-process", "--out", "alone").ok()
    server, endpoint = serve(shell, *SERVER, endpoint="tcp://*:*")
    assert endpoint.startswith("tcp://0.0.0.0:")
    schedule(shell, "--connect", "out", *SCHEDULER).ok()
    assert server.finish().code == 0

    assert shell.files("out") == shell.files("alone")


def test_wrong_keys_are_rejected(shell, keys, wait_until):
    """Each is rejected at once with a reason and exit code 4; then the right one connects to the same server."""
    server, endpoint = serve(shell, *SERVER)
    own, other = SCHEDULER[:2], ("--server-key", "x/server.pub")
    stranger = ("--curve", "x/stranger.key", *SCHEDULER[2:])
    schedule(shell, "--connect", endpoint, *stranger).failed(4, "the keys do not match", "does not accept this key")
    wait_until(lambda: "whose key is not among the known ones" in server.err)
    schedule(shell, "--connect", endpoint, *own, *other).failed(4, "its key differs from --server-key")
    wait_until(lambda: "another key of this side" in server.err)
    plain = shell.start("schedule", "easy", "--connect", endpoint, "--hello-timeout", "600")
    wait_until(lambda: "a peer that uses no CURVE" in server.err)
    plain.kill()
    schedule(shell, "--connect", endpoint, *SCHEDULER).ok()

    assert server.finish().code == 0


def test_keys_for_a_server_that_has_none_are_refused(shell, keys):
    """A scheduler with --curve does not talk to a server without keys; the server serves another one then."""
    server, endpoint = serve(shell)
    schedule(shell, "--connect", endpoint, *SCHEDULER).failed(4, "the keys do not match", "is not encrypted")
    shell.run("schedule", "easy", "--connect", "tcp://127.0.0.1:9", "--hello-timeout", "0.5", *SCHEDULER).failed(
        4, "no server answered within 0.5 s"
    )
    schedule(shell, "--connect", endpoint).ok()

    assert server.finish().code == 0


@pytest.mark.parametrize("who", ["server", "scheduler"])
def test_the_end_of_the_other_side_is_noticed(shell, keys, who):
    """Exit code 4 and one message, at once, whichever side is killed."""
    server, endpoint = serve(shell, *SERVER, "--decision-timeout", "600")
    policy = shell.write("waits.py", WAITS)
    scheduler = shell.start("schedule", f"{policy}:Waits", "--connect", endpoint, *SCHEDULER)
    scheduler.until("thinking")
    killed, other = (server, scheduler) if who == "server" else (scheduler, server)
    killed.kill()
    shell.write("go", "")
    other.finish().failed(4, "disconnected")


WAITS = """
import time
from pathlib import Path
from pipistrelle.schedulers.orders.fixed import Fcfs


class Waits:
    name = "waits"
    order = Fcfs()

    def decide(self, view):
        if view.waiting:
            print("thinking", flush=True)
            while not Path("go").exists():
                time.sleep(0.02)
"""


def test_batsims_dialect_has_keys_too(shell, keys, free_endpoint):
    """There the scheduler listens, with --clients, and the server connects, with --server-key."""
    scheduler = shell.start("schedule", "easy", "--dialect", "batsim", "--bind", free_endpoint, *SERVER)
    scheduler.until("listening at")
    words = ("serve", "--dialect", "batsim", "-p", "tiny", "-w", shell.small(), "--connect", free_endpoint)
    shell.run(*words, "--hello-timeout", "0.3", "--out", "o1").failed(4, "no scheduler was there within 0.3 s")
    stranger = ("--curve", "x/stranger.key", *SCHEDULER[2:])
    shell.run(*words, "--hello-timeout", "0.3", "--out", "o2", *stranger).failed(
        4, "no scheduler was there within 0.3 s"
    )
    shell.run(*words, "--out", "o3", *SCHEDULER).ok()

    assert scheduler.finish().code == 0


def test_keys_are_private_and_never_overwritten(shell):
    """Only the owner can read private keys, from their creation on; nothing is written if one of the files exists."""
    told = shell.run("new", "keys", "k").ok().out
    files = {path.name: path for path in (shell.folder / "k").iterdir()}
    rights = {name: stat.S_IMODE(path.stat().st_mode) for name, path in files.items()}

    assert rights == {"server.key": 0o600, "server.pub": 0o644, "scheduler.key": 0o600, "scheduler.pub": 0o644}
    assert "k/server.key: private" in told
    assert not any("secret" in path.read_text() for name, path in files.items() if name.endswith(".pub"))
    assert "secret" not in told
    before = {name: path.read_bytes() for name, path in files.items()}
    files["server.pub"].unlink()
    shell.run("new", "keys", "k").failed(2, "k/server.key", "never overwritten")
    shell.run("new", "keys", "k", "--name", "new", "--name", "scheduler").failed(
        2, "k/scheduler.key", "never overwritten"
    )
    (shell.folder / "k" / "sly.key").symlink_to("elsewhere")
    shell.run("new", "keys", "k", "--name", "sly").failed(2, "never overwritten")
    shell.run("new", "keys", "k", "--name", "../up").failed(2, "a name of a key is not valid")
    shell.run("new", "keys", "w.txt/k" if shell.write("w.txt", "") else "").failed(6, "cannot write the keys")
    left = {path.name: path.read_bytes() for path in (shell.folder / "k").iterdir() if not path.is_symlink()}
    assert left == {name: text for name, text in before.items() if name != "server.pub"}


def test_a_private_key_that_others_can_read_is_refused(shell, keys):
    """The key is rejected before anything listens, with exit code 2; the message does not show it."""
    path = shell.folder / "k" / "server.key"
    path.chmod(0o640)
    outcome = shell.run("serve", "-w", "demo", "--endpoint", "tcp://127.0.0.1:*", "--out", "out", *SERVER)
    outcome.failed(2, "k/server.key", "other users can read or change this", "chmod 600")

    assert path.read_text().split('"')[3] not in outcome.err
    assert not (shell.folder / "out" / "connection.json").exists()


@pytest.mark.parametrize(
    ("words", "fragments"),
    [
        (["serve", "--curve", "k/server.key"], ["--curve needs --endpoint"]),
        (["serve", "--endpoint", "tcp://*:*", "--clients", "k"], ["need --curve"]),
        (["serve", "--endpoint", "tcp://*:*", *SERVER, "--insecure"], ["--insecure and --curve exclude each other"]),
        (["serve", "--endpoint", "tcp://*:*", *SCHEDULER], ["--server-key is for the side that connects"]),
        (["serve", "--endpoint", "tcp://*:*", "--curve", "k/server.key", "--clients", "."], ["is empty", "*.pub"]),
        (
            ["serve", "--endpoint", "tcp://*:*", "--curve", "k/server.key", "--clients", "no"],
            ["no", "cannot read the folder"],
        ),
        (["schedule", "easy", "--connect", "tcp://node7:5", "--curve", "k/scheduler.key"], ["needs --server-key"]),
        (["schedule", "easy", "--connect", "tcp://node7:5", *SERVER], ["--clients is for the side that listens"]),
        (
            ["schedule", "easy", "--connect", "tcp://node7:5", *SCHEDULER[:3], "k/server.key"],
            ["this is a private key", "expected the public key"],
        ),
    ],
)
def test_options_that_do_not_go_together_are_refused(shell, keys, words, fragments):
    """Exit code 2 and what to do instead."""
    shell.run(*words).failed(2, *fragments)


@pytest.mark.parametrize("endpoint", REMOTE)
def test_remote_addresses_need_keys_or_insecure(shell, endpoint):
    """Neither side listens at, or connects to, an address that may be remote, unless --insecure is given."""
    refusals = ("--curve", "--insecure")
    shell.run("serve", "-w", "demo", "--endpoint", endpoint).failed(2, "reached from other machines", *refusals)
    shell.run("run", "-w", "demo", "--endpoint", endpoint).failed(2, "reached from other machines", *refusals)
    if "*" not in endpoint:
        shell.run("schedule", "easy", "--connect", endpoint).failed(2, "may be on another machine", *refusals)


def test_insecure_allows_remote_addresses(shell):
    """Both sides accept --insecure, and so does `run`, which passes it to its scheduler."""
    server, endpoint = serve(shell, "--insecure", endpoint="tcp://*:*")
    shell.run("schedule", "easy", "--connect", "out").failed(2, endpoint, "may be on another machine")
    schedule(shell, "--connect", "out", "--insecure").ok()
    assert server.finish().code == 0
    shell.run("run", "-p", "tiny", "-w", shell.small(), "--endpoint", "tcp://*:*", "--insecure", "--out", "o").ok()

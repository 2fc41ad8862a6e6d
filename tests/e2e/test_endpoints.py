"""Where a server listens: what is rejected, what is removed afterwards, and which side may start first."""

import json
import os
import signal
import socket

import pytest


def serve(shell, *arguments):
    """Start a server for the small workload."""
    return shell.start("serve", "-p", "tiny", "-w", shell.small(), "--hello-timeout", "600", *arguments)


def address(server):
    """Return the address that a server prints."""
    return server.until("waiting for a scheduler").out.split()[2].rstrip(";")


@pytest.mark.parametrize(
    ("endpoint", "fragments"),
    [
        ("udp://127.0.0.1:5000", ["this is no endpoint", "tcp://HOST:PORT", "ipc://PATH"]),
        ("tcp://127.0.0.1", ["this is no endpoint"]),
        ("tcp://127.0.0.1:0", ["this is no endpoint", "PORT 1 to 65535"]),
        ("tcp://127.0.0.1:99999", ["this is no endpoint", "PORT 1 to 65535"]),
        (f"tcp://127.0.0.1:{'9' * 5000}", ["this is no endpoint"]),
        ("tcp://127.0.0.999:*", ["cannot listen here", "--endpoint"]),
        ("tcp://*:28000", ["can be reached from other machines", "--insecure"]),
        ("tcp://0.0.0.0:28000", ["can be reached from other machines", "--insecure"]),
        ("ipc://", ["not a usable path of a Unix socket"]),
        (f"ipc:///tmp/{'x' * 120}", ["not a usable path of a Unix socket", "1 to 107 bytes", "found 125 bytes"]),
        ("ipc://no/such/folder/socket", ["the folder does not exist", "no/such/folder first"]),
        ("ipc://small.swf", ["a file that is no socket is in the way"]),
        ("ipc://odd\udcff", ["not a usable path of a Unix socket"]),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)
def test_an_endpoint_that_cannot_be_listened_at_is_refused(shell, endpoint, fragments):
    """The message says which and why; neither socket nor connection file appears."""
    serve(shell, "--endpoint", endpoint, "--out", "out").finish().failed(2, *fragments)

    assert list((shell.folder / "out").iterdir()) == []


@pytest.mark.parametrize("scheme", ["tcp", "ipc"])
def test_an_endpoint_in_use_is_refused(shell, scheme):
    """A second server leaves the first one's endpoint alone."""
    first = serve(shell, "--out", "o1", "--endpoint", "tcp://127.0.0.1:*" if scheme == "tcp" else "ipc://s.sock")
    endpoint = address(first)
    serve(shell, "--out", "o2", "--endpoint", endpoint).finish().failed(2, endpoint, "the endpoint is in use")
    shell.run("schedule", "easy", "--connect", endpoint).ok()

    assert first.finish().ok().code == 0
    assert not (shell.folder / "s.sock").exists()


def test_the_socket_file_of_a_dead_server_is_taken_over(shell):
    """The socket file of a killed server does not prevent a new run, and is removed afterwards."""
    dead = serve(shell, "--out", "o1", "--endpoint", "ipc://s.sock")
    address(dead)
    dead.signal(signal.SIGKILL)
    dead.finish()
    assert (shell.folder / "s.sock").is_socket()
    assert (shell.folder / "o1" / "connection.json").is_file()
    second = serve(shell, "--out", "o1", "--endpoint", "ipc://s.sock")
    address(second)
    shell.run("schedule", "easy", "--connect", "o1").ok()

    second.finish().ok()
    assert not (shell.folder / "s.sock").exists()
    assert not (shell.folder / "o1" / "connection.json").exists()


@pytest.mark.parametrize("endpoint", ["tcp://localhost:*", "tcp://[::1]:*", "ipc://in.here", None])
def test_supported_endpoints_lead_to_a_run(shell, endpoint):
    """Names, IPv6, relative paths and the private default lead to a run."""
    if endpoint == "tcp://[::1]:*":
        try:
            socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        except OSError:
            pytest.skip("this machine has no IPv6 loopback")
    server = serve(shell, "--out", "out", *(["--endpoint", endpoint] if endpoint else []))
    shell.run("schedule", "easy", "--connect", address(server)).ok()
    server.finish().ok()


def test_other_machines_may_connect_only_with_insecure(shell):
    """--insecure listens on all addresses."""
    server = serve(shell, "--out", "out", "--endpoint", "tcp://*:*", "--insecure")
    port = address(server).rpartition(":")[2]
    shell.run("schedule", "easy", "--connect", f"tcp://127.0.0.1:{port}").ok()
    server.finish().ok()


def test_a_long_folder_for_temporary_files_does_not_matter(shell):
    """The private socket is elsewhere then, because its path would be too long."""
    long = shell.temporary / ("t" * 120)
    long.mkdir()
    shell.environment["TMPDIR"] = str(long)
    shell.run("run", "-p", "tiny", "-w", shell.small(), "--out", "out").ok()
    long.rmdir()


def test_without_a_scheduler_the_server_gives_up(shell):
    """Exit code 4 after the time limit; the message says how to start one; older outputs stay."""
    (shell.folder / "out").mkdir()
    shell.write("out/out_jobs.csv", "an older run's")
    outcome = serve(shell, "--hello-timeout", "0.5", "--out", "out", "--endpoint", "tcp://127.0.0.1:*").finish()
    outcome.failed(4, "no scheduler connected within 0.5 s", "pipistrelle schedule easy --connect tcp://127.0.0.1:")

    assert [path.name for path in (shell.folder / "out").iterdir()] == ["out_jobs.csv"]


@pytest.mark.parametrize(
    ("connect", "code", "fragments"),
    [
        ("tcp://127.0.0.1:9", 4, ["tcp://127.0.0.1:9", "no server answered within 0.5 s", "pipistrelle serve"]),
        ("ipc://nobody.here", 4, ["ipc://nobody.here", "no server answered within 0.5 s"]),
        ("missing.json", 4, ["missing.json", "no connection file was written within 0.5 s", "pipistrelle serve"]),
        ("x" * 300, 4, ["no connection file was written within 0.5 s"]),
        (".", 4, ["connection.json", "no connection file was written within 0.5 s"]),
        ("garbage.json", 2, ["garbage.json", "this is not a connection file", "connection.json"]),
        ("empty.json", 2, ["empty.json", "this is not a connection file"]),
        ("latin.json", 2, ["latin.json", "this is not a connection file"]),
        ("list.json", 2, ["list.json", "this is not a connection file"]),
        ("deep.json", 2, ["deep.json", "this is not a connection file"]),
        ("number.json", 2, ["number.json: endpoint", "this is no endpoint", "found 7"]),
        ("other.json", 2, ["other.json: endpoint", "this is no endpoint", "found 'udp://x'"]),
        ("udp://127.0.0.1:5", 2, ["this is no endpoint", "tcp://"]),
        ("tcp://127.0.0.1", 2, ["tcp://127.0.0.1", "cannot connect"]),
        (f"ipc:///{'x' * 200}", 2, ["cannot connect"]),
        ("tcp://odd\udcff:5", 2, ["this is no endpoint"]),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else "",
)
def test_a_scheduler_without_a_server_gives_up(shell, connect, code, fragments):
    """An invalid address is rejected at once, a server that does not start after the time limit."""
    for name, content in {
        "garbage.json": b"{not json",
        "empty.json": b"",
        "latin.json": b'{"endpoint": "caf\xe9"}',
        "list.json": b"[]",
        "deep.json": b"[" * 100_000,
        "number.json": b'{"endpoint": 7}',
        "other.json": b'{"endpoint": "udp://x"}',
    }.items():
        shell.write(name, content)
    shell.run("schedule", "easy", "--connect", connect, "--hello-timeout", "0.5").failed(code, *fragments)


@pytest.mark.parametrize("way", ["tcp", "ipc", "file", "folder"])
@pytest.mark.parametrize("first", ["server", "scheduler"])
def test_either_side_may_start_first(shell, way, first):
    """Server and scheduler find each other, over each kind of address."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        free = f"tcp://127.0.0.1:{probe.getsockname()[1]}"
    endpoint = {"tcp": free, "ipc": "ipc://s.sock"}.get(way)
    connect = {"file": "out/connection.json", "folder": "out"}.get(way, endpoint)

    def start_server():
        return serve(shell, "--out", "out", *(["--endpoint", endpoint] if endpoint else []))

    if first == "server":
        server = start_server()
        address(server)
        scheduler = shell.start("schedule", "easy", "--connect", connect)
    else:
        scheduler = shell.start("schedule", "easy", "--connect", connect)
        server = start_server()

    ended = scheduler.finish().ok()
    assert "connected to pipistrelle" in ended.out
    assert "the simulation ended: completed" in ended.out
    assert "outputs in out" in server.finish().ok().out
    assert len(shell.ended_jobs()) == 4
    assert not (shell.folder / "out" / "connection.json").exists()


@pytest.mark.parametrize("endpoint", [(), ("--endpoint", "tcp://127.0.0.1:*")])
def test_the_connection_file_says_where_and_only_while_the_server_runs(shell, endpoint):
    """It is complete JSON; a second server with the same outputs is rejected, and the first undisturbed."""
    old = serve(shell, "--out", "out", *endpoint)
    file, where = shell.folder / "out" / "connection.json", address(old)
    assert json.loads(file.read_text()) == {"endpoint": where, "protocol": 1}
    shell.run("serve", "-p", "tiny", "-w", shell.small(), "--out", "out").failed(
        6, "out: another run is writing outputs here", f"process {old.pid}", "--out"
    )

    shell.run("schedule", "easy", "--connect", "out").ok()
    old.finish().ok()
    assert not file.exists()
    assert "connection" not in " ".join(os.listdir(shell.folder / "out"))


def test_the_connection_file_of_a_killed_server_is_ignored(shell):
    """A scheduler that finds it waits for the next server, which may start later."""
    server = shell.start("serve", "-p", "tiny", "-w", shell.small(), "--out", "out")
    server.until("listening")
    server.kill()
    shell.tidy()
    scheduler = shell.start("schedule", "easy", "--connect", "out")
    server = shell.start("serve", "-p", "tiny", "-w", shell.small(), "--out", "out")

    assert server.finish().code == 0
    assert scheduler.finish().code == 0


@pytest.mark.parametrize("now", ["nobody", "a mute", "a mute of our kind"])
def test_the_file_of_a_killed_server_with_a_port_is_read_again(shell, now):
    """A waiting scheduler connects to the next server as soon as the file names it, whatever uses the old port."""
    greeting = b"\xff" + bytes(8) + b"\x7f\x03\x00NULL" + bytes(48)
    ready = b"\x04\x1c\x05READY\x0bSocket-Type\x00\x00\x00\x06ROUTER"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        (shell.folder / "out").mkdir()
        stale = {"endpoint": f"tcp://127.0.0.1:{taken.getsockname()[1]}", "protocol": 1}
        shell.write("out/connection.json", json.dumps(stale))
        if now == "nobody":
            taken.close()
        scheduler = shell.start("schedule", "easy", "--connect", "out", "--hello-timeout", "600")
        scheduler.until("waiting for a server")
        if now == "nobody":
            assert serve(shell, "--out", "out").finish().code == 0
        else:
            mute, _ = taken.accept()
            with mute:
                if now == "a mute of our kind":
                    mute.sendall(greeting + ready)
                    heard = b""
                    while b"HELLO" not in heard:
                        heard += mute.recv(4096)
                assert serve(shell, "--out", "out").finish().code == 0
    assert scheduler.finish().code == 0


@pytest.mark.parametrize("path", ["@abstract", "*"])
def test_a_socket_without_a_file_is_refused(shell, path):
    """An abstract socket has no permissions, and a wildcard is not a fixed address."""
    shell.run("serve", "-w", "demo", "--endpoint", f"ipc://{path}").failed(2, "not a usable path of a Unix socket")


def test_a_relative_socket_is_found_from_elsewhere(shell, tmp_path):
    """The connection file has the absolute path."""
    server = shell.start("serve", "-p", "tiny", "-w", shell.small(), "--out", "out", "--endpoint", "ipc://sock")
    server.until("listening")
    told = (tmp_path / "out" / "connection.json").read_text()
    server.signal(2)
    server.finish()

    assert f"ipc://{tmp_path}/sock" in told

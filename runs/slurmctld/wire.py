"""Messages between slurmctld and the daemons of its nodes, in the protocol of Slurm 22.05.

A frame is its length, a header, the sender's credential of auth/none, and a body. Numbers are big-endian. A text has
its length before it, and a zero byte at its end. Only the messages that a node takes part in are here.
"""

from collections.abc import Mapping
from struct import Struct, error, pack, unpack_from
from typing import Final, NamedTuple

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.runs.slurmctld.conductor import VirtualTimeError

#: version of the protocol: that of Slurm 22.05
VERSION: Final = 38 << 8
#: the oldest version that slurmctld of this release speaks
_OLDEST: Final = 36 << 8
#: a number that stands for no value
NO_VALUE: Final = 0xFFFFFFFE
#: types of messages
REGISTRATION: Final = 1002
REGISTER: Final = 1001
PING: Final = 1008
PONG: Final = 1016
LAUNCH: Final = 4005
SCRIPT_ENDED: Final = 5018
TIME_LIMIT: Final = 6009
TERMINATE: Final = 6011
EPILOG_ENDED: Final = 6012
ABORT: Final = 6013
PREEMPTED: Final = 6016
RESULT: Final = 8001
#: messages that end a job on a node
ENDING: Final = (TIME_LIMIT, TERMINATE, ABORT, PREEMPTED)
#: results: done, and the job had no process there
DONE: Final = 0
NOTHING_LEFT: Final = 4002
#: state of a job that is put back into the queue, and of one that is preempted
REQUEUED: Final = 0x400
WAS_PREEMPTED: Final = 8

_HEADER: Final = Struct(">HHHLHHH")
#: the header of the oldest version has one more number in the third place
_OLD_HEADER: Final = Struct(">HHHHLHHH")
_AUTH_NONE: Final = 100
_GRES_MAGIC: Final = 0x438A34D4
_WITH_FILES: Final = 0x9E2
_WITH_TYPE: Final = 0x4
_ENERGY: Final = bytes(40)
_RELEASE: Final = "22.05.8"
_HOST: Final = "pipistrelle"
_LONGEST: Final = 1 << 28


class Message(NamedTuple):
    """A message between slurmctld and a node: its type, its body, and the version of the protocol.

    slurmctld speaks an older version to nodes that have not registered yet.
    """

    kind: int
    body: bytes
    version: int = VERSION


class Launch(NamedTuple):
    """Slurm's request to a node to start a batch job.

    Attributes:
        array_job, array_task: id of the array and index in it; 0 and `NO_VALUE` for a job that is no task.
        cpus: number of CPUs on each of the nodes.
    """

    job_id: int
    array_job: int
    array_task: int
    restarts: int
    cpus: tuple[int, ...]
    nodes: str


class WireError(PipistrelleError):
    """A message is not what Slurm 22.05 sends."""

    exit_code = VirtualTimeError.exit_code


def text(value: str) -> bytes:
    """Return a text in the encoding of Slurm's messages: its length, its bytes and a zero byte."""
    if not value:
        return bytes(4)
    encoded = value.encode() + b"\0"
    return pack(">L", len(encoded)) + encoded


def frame(message: Message, uid: int) -> bytes:
    """Return a message as bytes, as the user with number ``uid`` sends it."""
    sender = pack(">LLL", _AUTH_NONE, uid, uid) + text(_HOST)
    rest = (message.kind, len(message.body), 0, 0, 0)
    old = message.version == _OLDEST
    header = _OLD_HEADER.pack(_OLDEST, 0, 0, *rest) if old else _HEADER.pack(message.version, 0, *rest)
    whole = header + sender + message.body
    return pack(">L", len(whole)) + whole


def length_of(head: bytes) -> int:
    """Return the length in bytes of a frame, which its first four bytes (``head``) give."""
    length: int = unpack_from(">L", head)[0]
    if length > _LONGEST:
        raise WireError("slurmctld sent a message that is too long", found=f"{length:,} bytes")
    return length


def message_of(whole: bytes) -> Message:
    """Decode the message in a frame; ``whole`` is the frame without its first four bytes, the length.

    Raises:
        WireError: it is malformed, or of another version.
    """
    try:
        old = unpack_from(">H", whole)[0] == _OLDEST
        values = (_OLD_HEADER if old else _HEADER).unpack_from(whole)
    except error:
        raise WireError("slurmctld sent a message that cannot be read") from None
    version, (kind, length, forwards, results, _) = values[0], values[-5:]
    known = version == VERSION or (old and kind in (PING, REGISTER))
    if not known or forwards or results or length > len(whole):
        raise WireError(
            "slurmctld sent a message of another protocol",
            expected="Slurm 22.05, with no message to forward",
            found=f"version {version >> 8}, type {kind}, {forwards} nodes to forward to",
        )
    return Message(kind, whole[len(whole) - length :], version)


def result(code: int) -> bytes:
    """Return the body of a `RESULT` message with this return code."""
    return pack(">L", code)


def pong() -> bytes:
    """Return the body of a `PONG` message that reports no load, and a gibibyte of free memory."""
    return pack(">LQ", 0, 1024)


def script_ended(job_id: int, code: int, node: str) -> bytes:
    """Return the body of a `SCRIPT_ENDED` message; ``code`` is the script's exit status, as from ``wait``."""
    return pack(">BLLLL", 0, job_id, code, 0, 0) + text(node)


def epilog_ended(job_id: int, node: str) -> bytes:
    """Return the body of an `EPILOG_ENDED` message about a job on a node."""
    return pack(">LL", job_id, 0) + text(node)


def registration(
    node: str, now: int, shape: tuple[int, int, int, int, int], memory: int, gres: Mapping[str, int]
) -> bytes:
    """Return the body of the `REGISTRATION` message that describes a node to slurmctld.

    Args:
        now: the time (s).
        shape: CPUs, boards, sockets, cores of a socket, and threads of a core.
        memory: MiB.
        gres: {name or name:type: number}.
    """
    parts = [pack(">HH", VERSION, len(gres))]
    for key, count in gres.items():
        name, _, model = key.partition(":")
        flags = _WITH_FILES | (_WITH_TYPE if model else 0)
        parts.append(pack(">LQLLL", _GRES_MAGIC, count, shape[0], flags, _gres_id(name)))
        parts += [bytes(8), text(name), text(model), bytes(4)]
    owned = b"".join(parts)
    return b"".join(
        (
            pack(">QQL", now, now, 0),
            bytes(8),
            text(_HOST) + text(node) + text("x86_64") + bytes(4) + text("Linux"),
            pack(">HHHHH", *shape),
            pack(">QLLLLQ", memory, 0, 1, NO_VALUE, 0, memory),
            pack(">LH", 0, 0),
            pack(">LL", len(owned), len(owned)) + owned,
            _ENERGY + text(_RELEASE) + bytes(9),
        )
    )


def _gres_id(name: str) -> int:
    """Return the number that Slurm computes from the name of a generic resource."""
    found = 0
    for at, letter in enumerate(name.encode()):
        found += letter << (at * 8 % 32)
    return found & 0xFFFFFFFF


class _Reader:
    """Decodes values from the beginning of a message's body."""

    def __init__(self, body: bytes) -> None:
        self._body, self._at = body, 0

    def number(self, letter: str) -> int:
        form = Struct(f">{letter}")
        value: int = form.unpack_from(self._body, self._at)[0]
        self._at += form.size
        return value

    def text(self) -> str:
        length = self.number("L")
        self._at += length
        return self._body[self._at - length : self._at].rstrip(b"\0").decode("utf-8", "replace")

    def numbers(self, letter: str) -> list[int]:
        return [self.number(letter) for _ in range(self.number("L"))]


def launch_of(body: bytes) -> Launch:
    """Decode the body of a `LAUNCH` message, or raise WireError."""
    read = _Reader(body)
    try:
        job_id = read.number("L")
        for _ in range(3):  # another job's id; user and group
            read.number("L")
        read.text()
        read.numbers("L")
        read.text()
        for letter in "LQBB":  # tasks, memory, two flags
            read.number(letter)
        array_job, array_task = read.number("L"), read.number("L")
        read.text()
        read.text()
        read.number("H")
        read.number("H")
        restarts = read.number("H")
        read.number("H")
        cpus: list[int] = []
        if read.number("L"):
            counts = read.numbers("H")
            for count, times in zip(counts, read.numbers("L"), strict=True):
                cpus += [count] * times
        read.text()
        read.text()
        return Launch(job_id, array_job, array_task, restarts, tuple(cpus), read.text())
    except (error, ValueError):
        raise WireError("slurmctld sent the start of a job in an unknown form") from None


def ended_job(body: bytes) -> tuple[int, int]:
    """Return a job's number and its state in Slurm from the body of an `ENDING` message, or raise WireError."""
    # The credential, if there is one, has the job's number first; the number and the state come again after it.
    if len(body) < 5:
        raise WireError("slurmctld sent the end of a job in an unknown form")
    mark = pack(">LL", NO_VALUE, NO_VALUE)
    place = body.rfind(mark)
    if place < 4 or len(body) < place + 16:
        raise WireError("slurmctld sent the end of a job in an unknown form")
    number: int = unpack_from(">L", body, place - 4)[0]
    state: int = unpack_from(">L", body, place + 12)[0]
    return number, state

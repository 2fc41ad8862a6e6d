"""One stand-in for the daemons of all nodes: it answers slurmctld, and reports the ends of jobs."""

import select
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from pipistrelle.runs.slurmctld import wire
from pipistrelle.runs.slurmctld.conductor import VirtualTimeError
from pipistrelle.runs.slurmctld.configuration import CONTROLLER_PORT, NodeOfCluster
from pipistrelle.runs.slurmctld.virtual_time import NANOSECONDS, VirtualTime
from pipistrelle.runs.slurmctld.wire import Launch, Message

_BACKLOG: Final = 4096
#: how long slurmctld's answer may take, and the shortest and longest time after which it is looked for (ns, virtual)
_PATIENCE: Final = 100 * NANOSECONDS
_SOON: Final = 1000
_LATER: Final = NANOSECONDS // 100
_CHUNK: Final = 1 << 16


class Struck(NamedTuple):
    """A running job that slurmctld ends; ``state`` is the job's new state in Slurm's numbers."""

    job_id: int
    state: int


class StandIn:
    """The nodes of a cluster, as slurmctld sees them.

    Messages are handled one at a time. Messages of one instant are handled in the order of the nodes that receive them.

    Args:
        nodes: the nodes, with their ports.
        time: the virtual time.
        uid: number of the user who runs slurmctld.
    """

    def __init__(self, nodes: Sequence[NodeOfCluster], time: VirtualTime, uid: int) -> None:
        self._nodes, self._time, self._uid = nodes, time, uid
        self._listening: dict[int, tuple[int, socket.socket]] = {}
        self._poll = select.poll()
        #: connections whose message has not come yet: (node, connection, bytes so far)
        self._open: list[tuple[int, socket.socket, bytearray]] = []
        #: jobs with a running script: {number: its first node}
        self.running: dict[int, str] = {}
        #: those of them that slurmctld ends
        self._ending: set[int] = set()
        #: what slurmctld did since `take_starts` and `take_struck`
        self._starts: list[Launch] = []
        self._struck: list[Struck] = []
        #: {number of a job: how long its nodes take to answer that nothing is left of it (ns)}; others answer at once
        self.delays: dict[int, int] = {}
        #: calls a function after some virtual time (ns)
        self.later: Callable[[int, Callable[[], None]], None] = lambda delay, action: action()
        #: nodes that were asked to register
        self._asked: list[int] = []
        for at, (_, port) in enumerate(nodes):
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
            listener.bind(self._address(port))
            listener.listen(_BACKLOG)
            self._listening[listener.fileno()] = (at, listener)
            self._poll.register(listener, select.POLLIN)

    def close(self) -> None:
        """Close all sockets."""
        for _, listener in self._listening.values():
            listener.close()
        for _, connection, _ in self._open:
            connection.close()

    def take_starts(self) -> list[Launch]:
        """Return the jobs that slurmctld has started since the last call."""
        found, self._starts = self._starts, []
        return found

    def take_struck(self) -> list[Struck]:
        """Return the running jobs that slurmctld has ended since the last call."""
        found, self._struck = self._struck, []
        return found

    def serve(self) -> None:
        """Answer all messages that slurmctld has sent; all programs are idle afterwards."""
        while True:
            self._answer_all()
            if not self._asked:
                return
            asked, self._asked = sorted(self._asked), []
            for at in asked:
                self._register(at)

    def _answer_all(self) -> None:
        """Answer all messages that slurmctld has sent so far."""
        while True:
            self._accept()
            if ready := self._received():
                at, connection, message = min(ready, key=lambda one: (one[0], one[2]))
                self._open = [one for one in self._open if one[1] is not connection]
                self._answer(at, connection, message)
            elif self._time.answered < self._time.calls:
                self._time.settle()
            else:
                return

    def register(self) -> None:
        """Register all nodes at slurmctld."""
        for at in range(len(self._nodes)):
            self._register(at)

    def script_ended(self, job_id: int, code: int) -> None:
        """Report to slurmctld that a job's script has ended; ``code`` is its exit status."""
        node = self.running.pop(job_id)
        self._ending.discard(job_id)
        self._send(wire.SCRIPT_ENDED, wire.script_ended(job_id, code, node))

    def epilog_ended(self, job_id: int, node: str) -> None:
        """Report to slurmctld that no process of a job is left on a node."""
        self._send(wire.EPILOG_ENDED, wire.epilog_ended(job_id, node), answered=False)

    # -- private

    def _address(self, port: int) -> bytes:
        return b"\0" + self._time.network + b"/%d" % port

    def _accept(self) -> None:
        for number, _ in self._poll.poll(0):
            at, listener = self._listening[number]
            with suppress(BlockingIOError):
                while True:
                    connection = listener.accept()[0]
                    connection.setblocking(False)
                    self._time.answered += 1
                    self._open.append((at, connection, bytearray()))

    def _received(self) -> list[tuple[int, socket.socket, Message]]:
        ready = []
        for one in list(self._open):
            at, connection, bytes_ = one
            gone = False
            with suppress(BlockingIOError):
                while not gone and not _is_whole(bytes_):
                    more = connection.recv(_CHUNK)
                    bytes_ += more
                    gone = not more
            if _is_whole(bytes_):
                ready.append((at, connection, wire.message_of(bytes(bytes_[4:]))))
            elif gone:
                connection.close()
                self._open.remove(one)
        return ready

    def _answer(self, at: int, connection: socket.socket, message: Message) -> None:
        kind, body = wire.RESULT, wire.result(wire.DONE)
        node = self._nodes[at].node.name
        if message.kind in (wire.PING, wire.REGISTER):
            kind, body = wire.PONG, wire.pong()
            if message.kind == wire.REGISTER:
                self._asked.append(at)
        elif message.kind == wire.LAUNCH:
            start = wire.launch_of(message.body)
            self.running[start.job_id] = node
            self._starts.append(start)
        elif message.kind in wire.ENDING:
            job_id, state = wire.ended_job(message.body)
            if self.running.get(job_id) == node:
                if job_id not in self._ending:  # slurmctld may say it twice
                    self._ending.add(job_id)
                    self._struck.append(Struck(job_id, state))
            else:
                body = wire.result(wire.NOTHING_LEFT)
                if delay := self.delays.get(job_id, 0):
                    self.later(delay, lambda: self._reply(connection, Message(kind, body)))
                    return
        self._reply(connection, Message(kind, body, message.version))

    def _reply(self, connection: socket.socket, message: Message) -> None:
        with suppress(OSError):  # slurmctld may have ended in the meantime, which is found out later
            connection.sendall(wire.frame(message, self._uid))
        connection.close()
        self._time.settle()

    def _register(self, at: int) -> None:
        node = self._nodes[at].node
        shape = (node.cpus, node.boards, node.sockets, max(1, node.cores // node.sockets), node.threads)
        now = self._time.now // NANOSECONDS
        self._send(wire.REGISTRATION, wire.registration(node.name, now, shape, node.real_memory, node.gres))

    def _send(self, kind: int, body: bytes, *, answered: bool = True) -> None:
        """Send a message to slurmctld and wait for its answer, or raise VirtualTimeError."""
        time, got = self._time, bytearray()
        last, step = time.now + _PATIENCE, _SOON
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            try:
                connection.connect(self._address(CONTROLLER_PORT))
                connection.sendall(wire.frame(Message(kind, body), self._uid))
                connection.setblocking(False)
                while answered and not _is_whole(got):
                    time.settle()
                    self._answer_all()  # the answer may have to wait for others
                    try:
                        more = connection.recv(_CHUNK)
                    except BlockingIOError:
                        if time.now >= last:
                            break
                        time.run(time.now + step)  # its thread sleeps for a microsecond, or waits for something
                        step = min(10 * step, _LATER)
                        continue
                    if not more:
                        break
                    got += more
            except OSError as error:
                raise VirtualTimeError("slurmctld did not answer a node", found=error.strerror) from None
        if answered and not _is_whole(got):
            raise VirtualTimeError("slurmctld did not answer a node")
        time.settle()


def _is_whole(got: bytearray) -> bool:
    return len(got) >= 4 and len(got) >= 4 + wire.length_of(bytes(got[:4]))

"""A correct session, for the schedulers in this folder: each of them has one fault."""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import zmq

Message = dict[str, Any]


def say(*words: object) -> None:
    """Print a line that the test reads."""
    print("peer", *words, flush=True)


def wait_for_go(now: float, begin: str) -> None:
    """From the time `begin` on, continue only when a file `go` exists in the folder."""
    while now >= float(begin) and not Path("go").exists():
        time.sleep(0.02)


def decision(now: float, kind: str, **data: object) -> Message:
    """Return a decision."""
    return {"timestamp": now, "type": kind, "data": data}


class Server:
    """The server, as a scheduler sees it."""

    def __init__(self, kind: int = zmq.REQ) -> None:
        self.socket = zmq.Context().socket(kind)
        self.socket.connect(sys.argv[1])

    def tell(self, message: object) -> Any:
        """Send a message and return the answer; if it is the last, print why and exit."""
        return self.tell_raw(json.dumps(message).encode())

    def tell_raw(self, frame: bytes) -> Any:
        """Send any bytes and return the answer."""
        self.socket.send(frame)
        return self.listen()

    def listen(self) -> Any:
        """Wait for the server's next message."""
        answer = json.loads(self.socket.recv())
        if answer.get("type") == "REFUSED":
            say("refused", answer["data"]["code"], answer["data"]["message"])
            sys.exit(0)
        for event in answer.get("events", []):
            if event["type"] == "SIMULATION_ENDS":
                say("ended", event["data"].get("reason", "completed"), event["data"].get("message", ""))
                sys.exit(0)
        return answer

    def hello(self, *features: str, **data: object) -> Any:
        """Send HELLO and return the answer."""
        return self.tell({"type": "HELLO", "data": {"name": "peer", "features": features, **data}})

    def reply(self, notice: Message, events: object = (), **more: object) -> Any:
        """Answer a notice and return the next."""
        return self.tell({"reply_to": notice["seq"], "now": notice["now"], "events": events, **more})

    def first_notice(self) -> Any:
        """Reply to WELCOME and return the first notice, SIMULATION_BEGINS."""
        return self.reply({"seq": 0, "now": 0})


class Fcfs:
    """First come, first served, on the lowest free units."""

    def __init__(self) -> None:
        self.free: set[int] = set()
        self.waiting: list[tuple[str, int]] = []
        self.held: dict[str, list[int]] = {}

    def decide(self, notice: Message) -> list[Message]:
        """Return the decisions for a notice."""
        self.learn(notice)
        return self.start(notice["now"])

    def learn(self, notice: Message) -> None:
        """Take note of the events of a notice."""
        for event in notice["events"]:
            data = event["data"]
            if event["type"] == "SIMULATION_BEGINS":
                self.free = set(range(data["nb_resources"]))
            elif event["type"] == "JOB_SUBMITTED":
                self.waiting.append((data["job_id"], data["job"]["res"]))
            elif event["type"] == "JOB_COMPLETED":
                self.free.update(self.held.pop(data["job_id"]))

    def start(self, now: float) -> list[Message]:
        """Return the starts of jobs at a time."""
        events = []
        while self.waiting and self.waiting[0][1] <= len(self.free):
            name, size = self.waiting.pop(0)
            self.held[name] = sorted(self.free)[:size]
            self.free.difference_update(self.held[name])
            alloc = " ".join(map(str, self.held[name]))
            events.append(decision(now, "EXECUTE_JOB", job_id=name, alloc=alloc))
        return events


def serve(decide: Callable[[Message, list[Message]], object], *features: str) -> None:
    """Serve first come, first served; `decide` may change the decisions or return the rest of a reply's fields."""
    server, fcfs = Server(), Fcfs()
    server.hello(*features)
    notice = server.first_notice()
    while True:
        events = fcfs.decide(notice)
        more = decide(notice, events)
        notice = server.reply(notice, events, **(more if isinstance(more, dict) else {}))

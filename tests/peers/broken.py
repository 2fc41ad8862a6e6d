"""A first come, first served scheduler with one fault, in either dialect: `broken.py URL FAULT DIALECT`.

The faults `none` and `aware` are correct; `aware` also subscribes to events of nodes and cancellations.
"""

import json
import random
import sys
import time
from typing import Any

import zmq

URL, FAULT, DIALECT = sys.argv[1:4]
NATIVE = DIALECT == "native"
TYPES = {
    "SIMULATION_BEGINS",
    "JOB_SUBMITTED",
    "JOB_COMPLETED",
    "JOB_KILLED",
    "REQUESTED_CALL",
    "NO_MORE_JOBS",
    "DECISION_REJECTED",
    "NOTIFY",
    "SIMULATION_ENDS",
    "JOB_STARTED",
    "JOB_CANCELLED",
    "NODES_FAILED",
    "NODES_REPAIRED",
    "MAINTENANCE_ANNOUNCED",
    "MAINTENANCE_BEGINS",
    "MAINTENANCE_ENDS",
}
#: faults of schedulers that subscribe to events of nodes
AWARE = FAULT in ("aware", "starts-on-failed-nodes", "nodes-first", "any-repair-is-whole", "no-maintenance")
FEATURES = ["failures"] * AWARE + ["takeover"] * (FAULT in ("aware", "ignores-starts"))
FEATURES += ["cancellations"] * (FAULT in ("aware", "keeps-cancelled-jobs"))
Message = dict[str, Any]


class Broken:
    """The scheduler with its view of the machine."""

    def __init__(self) -> None:
        self.size = 0
        self.free: set[int] = set()
        self.waiting: list[tuple[str, int]] = []
        self.held: dict[str, list[int]] = {}
        self.asked: dict[str, int] = {}
        #: {unit: number of reasons why it is down}
        self.down: dict[int, int] = {}
        self.over = False

    def decide(self, notice: Message) -> list[Message]:
        """Return the decisions for a notice."""
        now, events = notice["now"], notice["events"]
        if FAULT == "first-event-only":
            events = events[:1]
        elif FAULT == "no-empty-reply" and not [one for one in events if one["type"] != "NO_MORE_JOBS"]:
            time.sleep(1000)
        elif FAULT == "submissions-first":
            events = [one for one in events if one["type"] == "JOB_SUBMITTED"]
            self.take(events)
            decisions = self.starts(now)
            self.take([one for one in notice["events"] if one["type"] != "JOB_SUBMITTED"])
            return decisions
        elif FAULT == "small-buffer" and len(json.dumps(notice)) > 65536:
            events = []
        elif FAULT == "nodes-first":
            events = sorted(events, key=lambda one: one["type"] != "NODES_FAILED")
        self.take(events)
        return self.starts(now)

    def take(self, events: list[Message]) -> None:
        """Process events."""
        for event in events:
            kind, data = event["type"], event["data"]
            if FAULT == "knows-all-types" and kind not in TYPES:
                time.sleep(1000)
            if FAULT == "knows-all-notifies" and kind == "NOTIFY" and data["type"] == "coffee_is_ready":
                time.sleep(1000)
            if kind == "SIMULATION_BEGINS":
                self.size = data["nb_resources"]
                self.free = set(range(self.size))
            elif kind == "JOB_SUBMITTED":
                self.submitted(event, data)
            elif kind == "JOB_STARTED" and FAULT != "ignores-starts":
                self.started_before(data)
            elif kind == "JOB_COMPLETED":
                self.completed(data)
            elif kind == "JOB_CANCELLED" and FAULT != "keeps-cancelled-jobs":
                self.waiting = [(name, size) for name, size in self.waiting if name != data["job_id"]]
            elif kind == "JOB_KILLED" and FAULT == "frees-killed-jobs-again":
                self.free.update(unit for name in data["job_ids"] for unit in self.units_of(name))
            elif kind == "DECISION_REJECTED" and FAULT != "deaf-to-rejections":
                raise SystemExit("a decision was rejected")
            elif kind == "REQUESTED_CALL" and FAULT == "knows-its-calls":
                self.asked.pop(data.get("id", ""))
            elif kind == "SIMULATION_ENDS":
                self.over = True
            elif kind in ("NODES_FAILED", "MAINTENANCE_BEGINS"):
                self.out_of_service(kind, units_in(data["units"]))
            elif kind in ("NODES_REPAIRED", "MAINTENANCE_ENDS"):
                for unit in units_in(data["units"]):
                    self.down[unit] = 0 if FAULT == "any-repair-is-whole" else self.down.get(unit, 0) - 1

    def out_of_service(self, kind: str, units: list[int]) -> None:
        """Mark units as down."""
        if FAULT == "starts-on-failed-nodes" or (FAULT == "no-maintenance" and kind != "NODES_FAILED"):
            return
        for unit in units:
            if FAULT != "nodes-first" or unit in self.free:  # it assumes that no end frees such a unit
                self.down[unit] = self.down.get(unit, 0) + 1

    def submitted(self, event: Message, data: Message) -> None:
        """Queue a job."""
        job = data["job"]
        if FAULT == "strict-fields":
            assert set(data) <= {"job_id", "job"}, data
        if FAULT == "ascii-names":
            data["job_id"].encode("ascii")
        if FAULT == "number-names":
            job["id"] = str(int(float(job["id"].partition("!")[2])))
        if FAULT == "needs-walltimes":
            assert job["walltime"] > 0
        if FAULT == "narrow-times":
            assert event["timestamp"] < 2**32
        if FAULT == "forgets-attempts" and "#" in data["job_id"]:
            return
        name = data["job_id"].lower() if FAULT == "folds-case" else data["job_id"]
        self.waiting.append((name, job["res"]))

    def started_before(self, data: Message) -> None:
        """Record a job that the previous scheduler has started."""
        self.waiting = [(name, size) for name, size in self.waiting if name != data["job_id"]]
        self.held[data["job_id"]] = units_in(data["alloc"])
        self.free.difference_update(self.held[data["job_id"]])

    def completed(self, data: Message) -> None:
        """Free the units of a job."""
        name = data["job_id"].lower() if FAULT == "folds-case" else data["job_id"]
        if FAULT == "only-success-frees" and data["job_state"] != "COMPLETED_SUCCESSFULLY":
            return
        if FAULT == "keeps-preempted-jobs" and data.get("cause") == "preempted":
            return
        self.free.update(self.units_of(name))

    def units_of(self, name: str) -> list[int]:
        """Return the units of a job; with the fault, also those of a completed job."""
        return self.held.get(name, []) if FAULT == "frees-killed-jobs-again" else self.held.pop(name)

    def starts(self, now: float) -> list[Message]:
        """Start the jobs that fit; reject those that never can."""
        found = []
        while self.waiting:
            name, size = self.waiting[0]
            free = {unit for unit in self.free if self.down.get(unit, 0) <= 0}
            if size > self.size and FAULT != "waits-for-the-impossible":
                found.append({"timestamp": now, "type": "REJECT_JOB", "data": {"job_id": name}})
            elif size <= len(free) or (FAULT == "overcommits" and size <= self.size):
                units = sorted(free)[:size]
                if FAULT == "overcommits":
                    units = list(range(size))
                elif FAULT == "draws-lots":
                    units = random.sample(sorted(free), size)
                if FAULT == "contiguous-text":
                    text = f"{units[0]}-{units[0] + size - 1}" if units else ""
                else:
                    text = " ".join(map(str, units))
                self.held[name] = units
                self.free.difference_update(units)
                found.append({"timestamp": now, "type": "EXECUTE_JOB", "data": {"job_id": name, "alloc": text}})
            else:
                break
            self.waiting.pop(0)
        return found


def units_in(text: str) -> list[int]:
    """Return the numbers in a set of units."""
    ends = (part.partition("-") for part in text.split())
    return [unit for first, _, last in ends for unit in range(int(first), int(last or first) + 1)]


def reply_to(notice: Message, events: list[Message]) -> bytes:
    """Return the reply's frame."""
    reply = {"now": notice["now"], "events": events}
    if NATIVE:
        reply["reply_to"] = notice["seq"]
    text = json.dumps(reply)
    if FAULT == "rounds-times":
        text = json.dumps(json.loads(text, parse_float=lambda digits: float(f"{float(digits):.3f}")))
    return text.encode()


def main() -> None:
    """Exchange messages until the end."""
    socket = zmq.Context().socket(zmq.REQ if NATIVE else zmq.REP)
    socket.linger = 2000
    scheduler = Broken()
    if NATIVE:
        socket.connect(URL)
        hello = {"name": f"broken by {FAULT}", "features": FEATURES}
        socket.send(json.dumps({"type": "HELLO", "data": hello}).encode())
        greeting = json.loads(socket.recv())
        if greeting["type"] == "REFUSED":
            if FAULT == "waits-after-refusal":
                time.sleep(1000)
            raise SystemExit(greeting["data"]["message"])
        socket.send(b'{"reply_to": 0, "now": 0}')
    else:
        socket.bind(URL)
    while not scheduler.over:
        notice = json.loads(socket.recv())
        decisions = scheduler.decide(notice)
        if scheduler.over and FAULT == "waits-after-the-end":
            time.sleep(1000)
        if scheduler.over and FAULT == "waits-for-its-jobs" and scheduler.held:
            time.sleep(1000)
        if not (NATIVE and scheduler.over):
            socket.send(reply_to(notice, decisions))
    if FAULT == "fails-at-the-end":
        raise SystemExit(3)


main()

"""A scheduler for Batsim's dialect: it listens at an endpoint and serves first come, first served, with one FAULT.

Faults that begin with `mid-` show once two jobs have ended; `begins-` at the first message; `before-` before listening.
`waits-TIME` waits from that time on for a file `go` in the folder. `slow-S` takes S seconds for each
message. `mid-anew` closes the connection and listens again.
"""

import json
import os
import signal
import socket
import sys
import time

import zmq
from talk import Fcfs, say, wait_for_go

ENDPOINT, FAULT = sys.argv[1:3]
WHEN, _, HOW = FAULT.partition("-")


def garbage(now: float) -> bytes | list[bytes]:
    """Return a reply with the fault."""
    good = json.dumps({"now": now, "events": []}).encode()
    return {
        "text": b"start everything, please",
        "empty": b"",
        "null": b"null",
        "truncated": good[:-4],
        "nan": json.dumps({"now": float("nan"), "events": []}).encode(),
        "past": json.dumps({"now": now - 50, "events": []}).encode(),
        "no-events": json.dumps({"now": now}).encode(),
        "control": b"one\r\npipistrelle: two\x1b[31m",
        "parts": [good, b"and more"],
        "huge": good[:-2] + b" " * 100_000_000 + b"]}",
        "enormous": b"x" * 1_200_000_000,
    }[HOW.removeprefix("garbage-")]


def fault(now: float) -> bytes | list[bytes] | None:
    """Die, hang, or return an invalid reply."""
    if HOW.startswith("SIG"):
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.Signals[HOW])
    if HOW.startswith("exit-"):
        os._exit(int(HOW.removeprefix("exit-")))
    if HOW == "hang":
        time.sleep(3600)
    if HOW == "anew":
        listen_anew()
    return garbage(now)


def listen_anew() -> None:
    """Close the connection, listen again, and end if no peer connects for some time."""
    sock.close(0)
    again = zmq.Context.instance().socket(zmq.REP)
    again.setsockopt(zmq.RCVTIMEO, 300)
    again.bind(ENDPOINT)
    try:
        say("got again", again.recv())
    except zmq.Again:
        say("nobody came again")
    os._exit(0)


if FAULT == "tcp-silent":
    host, port = ENDPOINT.removeprefix("tcp://").split(":")
    listening = socket.create_server((host, int(port)))
    time.sleep(3600)
if WHEN == "late":
    time.sleep(float(HOW))
if WHEN == "before":
    fault(0)
sock = zmq.Context.instance().socket(getattr(zmq, HOW) if WHEN == "kind" else zmq.REP)
sock.bind(ENDPOINT)
say("listens")
if WHEN == "kind":
    time.sleep(3600)
fcfs = Fcfs()
while True:
    message = json.loads(sock.recv())
    now, types = message["now"], [event["type"] for event in message["events"]]
    say("at", now, *types)
    if "SIMULATION_ENDS" in types:
        if WHEN != "farewell":
            sock.send(json.dumps({"now": now, "events": []}).encode())
        say("ended")
        sys.exit(0)
    reply = json.dumps({"now": now, "events": fcfs.decide(message)}).encode()
    if (WHEN == "mid" and now >= 100) or (WHEN == "begins"):
        wrong = fault(now)
        sock.send_multipart(wrong if isinstance(wrong, list) else [wrong])
    else:
        if WHEN == "waits":
            wait_for_go(now, HOW)
        if WHEN == "slow":
            time.sleep(float(HOW))
        sock.send(reply)

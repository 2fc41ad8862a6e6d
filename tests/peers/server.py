"""A server of the native dialect, with one FAULT: it listens at an endpoint and simulates one job of 5 s.

late-S listens only after S seconds; anew closes the connection in the middle and listens again.
"""

import json
import os
import sys
import time

import zmq
from talk import Message, say

ENDPOINT, FAULT = sys.argv[1:3]
WHAT, _, HOW = FAULT.partition("-")
SUBMITTED = {"job_id": "w0!1", "job": {"id": "w0!1", "res": 2, "walltime": 60.0}}


def notice(seq: int, now: float, kind: str, **data: object) -> Message:
    """Return a notice of one event."""
    return {"seq": seq, "now": now, "events": [{"timestamp": now, "type": kind, "data": data}]}


WELCOME = {"type": "WELCOME", "data": {"protocol": 1, "features": [], "run_id": "peer", "server": "peer"}}
STORY = [
    WELCOME,
    notice(1, 0.0, "SIMULATION_BEGINS", nb_resources=4),
    notice(2, 0.0, "JOB_SUBMITTED", **SUBMITTED),
    notice(3, 5.0, "JOB_COMPLETED", job_id="w0!1", job_state="COMPLETED_SUCCESSFULLY", alloc="0-1"),
    notice(4, 5.0, "SIMULATION_ENDS"),
]
if WHAT == "mute":
    STORY[0] = {}
elif WHAT == "early":  # before the scheduler asks
    del STORY[0]
elif WHAT == "twice":
    STORY.insert(3, STORY[2])
elif WHAT == "gap":
    del STORY[2]
elif WHAT == "back":
    STORY[4] = notice(4, 4.0, "SIMULATION_ENDS")
if WHAT == "late":
    time.sleep(float(HOW))
context = zmq.Context()
sock = context.socket(zmq.ROUTER)
sock.bind(ENDPOINT)
say("listens")
for number, message in enumerate(STORY):
    who, empty, frame = sock.recv_multipart()
    say("got", json.loads(frame).get("reply_to", "HELLO"))
    if not message or (number == 3 and WHAT == "silent"):
        time.sleep(3600)
    if number == 3 and WHAT == "dies":
        os._exit(7)
    if number == 3 and WHAT == "anew":
        sock.close(0)
        sock = context.socket(zmq.ROUTER)
        sock.bind(ENDPOINT)
        sock.setsockopt(zmq.RCVTIMEO, 300)
        try:
            say("got again", sock.recv_multipart()[-1])
        except zmq.Again:
            say("nobody came again")
        os._exit(0)
    if WHAT == "slow":
        time.sleep(0.05)
    sent = b"start nothing" if number == 3 and WHAT == "garbage" else json.dumps(message).encode()
    sock.send_multipart([who, empty, sent])
sock.close()
context.term()

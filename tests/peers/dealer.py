"""Uses a DEALER socket; `plain` sends no empty delimiter, `impatient` answers each notice twice at the end."""

import json
import sys

import zmq
from talk import Fcfs, Message, Server, say

server, fcfs = Server(zmq.DEALER), Fcfs()


def send(message: Message) -> None:
    """Send with or without a delimiter."""
    frame = json.dumps(message).encode()
    server.socket.send_multipart([frame] if "plain" in sys.argv else [b"", frame])


def receive() -> Message:
    """Return the next message."""
    *delimiter, frame = server.socket.recv_multipart()
    assert delimiter == ([] if "plain" in sys.argv else [b""])
    message: Message = json.loads(frame)
    return message


send({"type": "HELLO", "data": {"name": "dealer"}})
assert receive()["type"] == "WELCOME"
reply: Message = {"reply_to": 0, "now": 0, "events": []}
while True:
    send(reply)
    if "impatient" in sys.argv and reply["now"] >= 100:
        send(reply)
    notice = receive()
    if "seq" not in notice:
        say("refused", notice["data"]["code"])
        break
    if notice["events"][-1]["type"] == "SIMULATION_ENDS":
        say("ended", notice["events"][-1]["data"].get("reason", "completed"))
        break
    reply = {"reply_to": notice["seq"], "now": notice["now"], "events": fcfs.decide(notice)}

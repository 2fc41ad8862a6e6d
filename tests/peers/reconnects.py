"""Closes its connection once two jobs have ended, reconnects, and sends HELLO; prints the answer."""

import json

import zmq
from talk import Fcfs, Server, say

server, fcfs = Server(), Fcfs()
server.hello()
notice = server.first_notice()
while notice["now"] < 100:
    notice = server.reply(notice, fcfs.decide(notice))
server.socket.close(0)
again = Server()
again.socket.setsockopt(zmq.RCVTIMEO, 3000)
again.socket.setsockopt(zmq.LINGER, 0)
again.socket.send(json.dumps({"type": "HELLO", "data": {"name": "peer"}}).encode())
try:
    say("told", json.loads(again.socket.recv()).get("data", {}).get("code"))
except zmq.Again:
    say("told nothing")

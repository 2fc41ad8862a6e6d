"""Sends something other than a HELLO first, of the given KIND; prints the rejection."""

import sys

from talk import Server, say

HELLO = b'{"type": "HELLO", "data": {"name": "stranger", "protocol_min": %d, "protocol_max": %d}}'
FRAMES = {
    "not-json": b"good evening",
    "empty": b"",
    "reply": b'{"reply_to": 0, "now": 0, "events": []}',
    "no-name": b'{"type": "HELLO", "data": {}}',
    "old-batsim": b'{"now": 0.0, "events": []}',
    "deep": b'{"type": "HELLO", "data": ' + b"[" * 200_000,
    "version-99": HELLO % (99, 100),
    "version-0": HELLO % (0, 0),
    "version-named": HELLO.replace(b"stranger", b"\\u001b[2J\\n" + b"n" * 9999) % (99, 100),
    "version-turned": HELLO % (2, 1),
    "huge": b"y" * 100_000_000,
}
server = Server()
if sys.argv[2] == "eager":
    server.hello()
    server.tell({"reply_to": 0, "now": 0, "events": [{"timestamp": 0, "type": "STOP", "data": {}}]})
elif sys.argv[2] == "for-ever":
    while True:  # answers each REFUSED with the same
        server.socket.send(b"again")
        server.socket.recv()
greeting = server.tell_raw(FRAMES[sys.argv[2]])
say("welcomed", greeting)

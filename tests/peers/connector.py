"""A server of Batsim's dialect: connects to a scheduler's endpoint, sends the frames in a file, prints the replies.

The file has one frame per line. After the last one it prints that and ends; `@wait` waits for a file `go` first,
`@slow` for a moment; `@anew` closes the connection and opens another.
"""

import sys
import time
from pathlib import Path

import zmq
from talk import say, wait_for_go

context = zmq.Context()
sock = context.socket(zmq.REQ)
sock.connect(sys.argv[1])
for frame in Path(sys.argv[2]).read_text().splitlines():
    if frame == "@wait":
        say("waits")
        wait_for_go(0, "0")
        continue
    if frame == "@slow":
        time.sleep(0.1)
        continue
    if frame == "@anew":
        sock.close(0)
        sock = context.socket(zmq.REQ)
        sock.setsockopt(zmq.RCVTIMEO, 300)
        sock.setsockopt(zmq.LINGER, 0)
        sock.connect(sys.argv[1])
        continue
    sock.send(frame.encode())
    say("got", sock.recv().decode())
say("done")

"""A server of Batsim's dialect: connects to a scheduler's endpoint, sends the frames in a file, prints the replies.

The file holds one frame a line. After the last one it says so and ends; `@sleep` waits for a while before the next.
"""

import sys
import time
from pathlib import Path

import zmq
from talk import say

sock = zmq.Context().socket(zmq.REQ)
sock.connect(sys.argv[1])
for frame in Path(sys.argv[2]).read_text().splitlines():
    if frame == "@sleep":
        say("waits")
        time.sleep(2)
        continue
    sock.send(frame.encode())
    say("got", sock.recv().decode())
say("done")

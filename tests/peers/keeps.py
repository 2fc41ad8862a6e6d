"""First come, first served, with the feature `state`: keeps.py ENDPOINT WAY [SECONDS].

The ways: `gives` sends and restores its state; `forgets` sends none; `refuses` the state to restore; `babbles` sends
an invalid answer; `dies` at the request; `sleeps` then. From the time SECONDS on it waits for a
file `go`. It prints how many messages it received, and what was done with its state.
"""

import os
import sys
import time

from talk import Fcfs, Server, say, wait_for_go

WAY = sys.argv[2]
BEGIN = sys.argv[3] if len(sys.argv) > 3 else "inf"

server, fcfs = Server(), Fcfs()
welcome = server.hello("state", version="7")["data"]
say("will be asked" if "max_state" in welcome else "is not asked", welcome["features"])
message = server.first_notice()
while True:
    data = message.get("data", {})
    if message.get("type") == "SAVE":
        state = {"free": sorted(fcfs.free), "waiting": fcfs.waiting, "held": fcfs.held}
        answer = {"type": "SAVED", "data": {"reply_to": data["seq"], "state": state}}
        if WAY == "forgets":
            answer["data"] |= {"state": None, "why": "it has\x1b[2J a bad memory"}
        elif WAY == "babbles":
            answer = {"reply_to": data["seq"], "now": 0.0}
        elif WAY == "dies" and data["seq"] > 1:
            os._exit(3)
        elif WAY == "sleeps" and data["seq"] > 1:
            say("sleeps")
            time.sleep(600)
        message = server.tell(answer)
    elif message.get("type") == "RESTORE":
        if WAY == "refuses":
            say("refuses")
            server.tell({"reply_to": data["seq"], "now": 0.0, "leaves": "error"})
        state = data["state"]
        fcfs.free, fcfs.waiting, fcfs.held = set(state["free"]), state["waiting"], state["held"]
        say("restored", data["seq"])
        message = server.tell({"reply_to": data["seq"], "now": data["now"]})
    else:
        say("told", message["seq"])
        if message["now"] >= float(BEGIN):
            say("waits")
        wait_for_go(message["now"], BEGIN)
        message = server.reply(message, fcfs.decide(message))

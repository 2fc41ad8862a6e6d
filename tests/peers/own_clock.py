"""A scheduler that is a simulation with its own clock: `own_clock.py URL PERIOD`.

It looks at its queue every PERIOD seconds of its own time, and uses the feature `lookahead`.
"""

import math
import sys

from talk import Fcfs, Message, Server, say

PERIOD = float(sys.argv[2])


def main() -> None:
    """Let the clock tick from notice to notice."""
    server, fcfs = Server(), Fcfs()
    assert server.hello("lookahead")["data"]["features"] == ["lookahead"]
    notice = server.first_notice()
    due = 0.0
    while True:
        fcfs.learn(notice)
        now, until = notice["now"], notice.get("next")
        if until is not None and until < now:
            say("next", until, "is before now", now)
        decided: list[Message] = []
        due = max(due, math.ceil(now / PERIOD) * PERIOD)
        # While nothing happens on the server's side, a later look finds the same as the first.
        if until is None or due < until:
            decided = fcfs.start(due)
            if decided:
                now = due
            due += PERIOD
        notice = server.tell({"reply_to": notice["seq"], "now": now, "events": decided})


main()

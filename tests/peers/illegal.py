"""Makes the named illegal decisions of illegal.json (all: every one), and prints the server's reaction.

At 20 the jobs 1 and 2 run and 3 waits; at 500 the first three have ended and 4 waits.
"""

import json
import sys
from pathlib import Path

from talk import Message, decision, say, serve

CASES = json.loads(Path(__file__).with_suffix(".json").read_text())
wanted = [case for name, case in CASES.items() if sys.argv[2] in ("all", name)]
expected: dict[int, str] = {}


def decide(notice: Message, events: list[Message]) -> None:
    """Send the illegal decisions after two legal ones; compare them with the rejections in the next notice."""
    now = notice["now"]
    rejected = {}
    for event in notice["events"]:
        if event["type"] == "DECISION_REJECTED" and event["timestamp"] == now and event["data"]["message"]:
            rejected[event["data"]["index"]] = event["data"]["code"]
    if rejected or expected:
        say("as expected" if rejected == expected else f"NOT as expected: {rejected}", "at", now)
        expected.clear()
        return
    cases = [case for case in wanted if case["at"] == now]
    if cases:
        job = {20: "w0!3", 500: "w0!4"}[now]
        legal = [
            decision(now, "SET_JOB_METADATA", job_id=job, metadata=f"seen at {now:g}"),
            decision(now, "CALL_ME_LATER", timestamp=600, id="end" if now == 20 else "again"),
        ]
        expected.update({index: case["code"] for index, case in enumerate(cases, len(legal))})
        events[:0] = [*legal, *(case["decision"] for case in cases)]


serve(decide)

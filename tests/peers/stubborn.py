"""Prevents the run from ending, in the given WAY."""

import sys

from talk import Message, Server, decision, say

WAY = sys.argv[2]
server = Server()
server.hello("wake_filter")
notice: Message = server.first_notice()
calls = 0
while True:
    now = notice["now"]
    events: list[Message] = []
    more: dict[str, object] = {}
    if notice["seq"] == 1:
        pass
    elif WAY == "rejected":  # repeats a decision that is never legal
        events = [decision(now, "EXECUTE_JOB", job_id="w0!1", alloc="900-901")]
    elif WAY == "call-now":  # requests a call at once
        events = [decision(now, "CALL_ME_LATER", timestamp=now)]
    elif WAY == "poll":  # polls the idle machine every second, for ever
        events = [decision(now, "CALL_ME_LATER", timestamp=now + 1)]
    elif WAY == "deaf":  # subscribes to no events
        more = {"wake": []}
    elif WAY == "late":  # requests one call, long after the last job
        events = [decision(now, "CALL_ME_LATER", timestamp=9000)] if notice["seq"] == 2 else []
    elif WAY == "asleep":  # is ready again only when the run is over
        more = {"now": 1e6}
    elif WAY == "one-left":  # starts all jobs except the last
        for event in notice["events"]:
            if event["type"] == "JOB_SUBMITTED" and event["data"]["job_id"] != "w0!4":
                events.append(decision(now, "REJECT_JOB", job_id=event["data"]["job_id"]))
    calls += 1
    if calls == 20_010:
        say("gave up: the server takes anything")
        break
    notice = server.reply(notice, events, **more)

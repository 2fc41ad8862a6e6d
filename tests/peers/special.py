"""Does one legal but unusual thing, as NAMED, and prints the server's reaction."""

import sys

from talk import Message, decision, say, serve

WHAT = sys.argv[2]
FEATURES = {
    "dynamic": ["dynamic_jobs"],
    "astronomic": ["dynamic_jobs"],
    "wake": ["wake_filter"],
    "odd-features": ["time_travel", "wake_filter"],
}


def decide(notice: Message, events: list[Message]) -> dict[str, object] | None:
    """Change the decisions of first come, first served."""
    now = notice["now"]
    for event in notice["events"]:
        if event["type"] in ("JOB_KILLED", "REQUESTED_CALL", "DECISION_REJECTED") or WHAT == "wake":
            say(event["type"], event["timestamp"], sorted(event["data"].items()))
    if WHAT == "stop" and now == 60:
        events.append(decision(now, "STOP", reason="seen enough"))
    elif WHAT == "reject-all":
        events[:] = [decision(now, "REJECT_JOB", job_id=event["data"]["job_id"], why="no, thank you")
                     for event in events] if now < 20 else []  # fmt: skip
        events += [decision(now, "REJECT_JOB", job_id=event["data"]["job_id"])
                   for event in notice["events"] if event["type"] == "JOB_SUBMITTED" and now >= 20]  # fmt: skip
    elif WHAT == "kill" and now == 20:  # one at once, one later; at 60 job 2 ends by itself, just before
        events.append(decision(now, "KILL_JOB", job_ids=["w0!1"], why="in the way"))
        events.append(decision(60, "KILL_JOB", job_ids=["w0!2"]))
    elif WHAT == "kill-late" and now == 20:  # job 2 has ended long before
        events.append(decision(90, "KILL_JOB", job_ids=["w0!2"]))
    elif WHAT == "dynamic" and notice["seq"] == 2:
        job = {"id": "dyn!a", "res": 1, "walltime": 50}
        events.append(decision(now, "REGISTER_JOB", job_id="dyn!a", job=job, runtime=30))
        events.append(decision(700, "REGISTER_JOB", job_id="dyn!b", job=job | {"id": "dyn!b"}, runtime=80))
    elif WHAT == "astronomic" and notice["seq"] == 2:
        for name in ("dyn!a", "dyn!b"):
            job = {"id": name, "res": 1}
            events.append(decision(now, "REGISTER_JOB", job_id=name, job=job, runtime=1.7e308))
    elif WHAT == "metadata" and now == 20:
        text = 'quotes " and, commas\nand lines; \u00fcml\u00e4ut \U0001f987'
        events.append(decision(now, "SET_JOB_METADATA", job_id="w0!3", metadata=text))
    elif WHAT == "calls" and now == 0 and notice["seq"] == 2:
        for name, time in (("a", 5), ("b", 7), ("", 6), ("c", 7), ("d", 8000)):
            events.append(decision(now, "CALL_ME_LATER", timestamp=time, id=name))
        events.append(decision(now, "CANCEL_CALL", id="b"))
        events.append(decision(6.5, "CANCEL_CALL", id="c"))
    elif WHAT == "calls" and now == 60:
        events.append(decision(now, "CANCEL_CALL", id="d"))
    elif WHAT == "wake":
        return {"wake": ["JOB_COMPLETED"]} if notice["seq"] > 2 and not events else None
    return None


serve(decide, *FEATURES.get(WHAT, []))

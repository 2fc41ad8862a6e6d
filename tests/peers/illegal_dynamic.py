"""Requests registration of jobs and registers illegal ones of the given KIND; prints the server's reaction."""

import sys

from talk import Message, decision, say, serve

REGISTRATIONS: dict[str, dict[str, object]] = {
    "workload-prefix": {"job_id": "w0!9", "job": {"id": "w0!9", "res": 1}, "runtime": 1},
    "no-prefix": {"job_id": "nine", "job": {"id": "nine", "res": 1}, "runtime": 1},
    "no-name": {"job_id": "d!", "job": {"id": "d!", "res": 1}, "runtime": 1},
    "other-id": {"job_id": "d!1", "job": {"id": "d!2", "res": 1}, "runtime": 1},
    "too-large": {"job_id": "d!1", "job": {"id": "d!1", "res": 5}, "runtime": 1},
    "no-units": {"job_id": "d!1", "job": {"id": "d!1", "res": 0}, "runtime": 1},
    "negative-runtime": {"job_id": "d!1", "job": {"id": "d!1", "res": 1}, "runtime": -1},
    "zero-walltime": {"job_id": "d!1", "job": {"id": "d!1", "res": 1, "walltime": 0}, "runtime": 1},
    "no-runtime": {"job_id": "d!1", "job": {"id": "d!1", "res": 1}},
}


def decide(notice: Message, events: list[Message]) -> None:
    """Register once, at the start of the simulation."""
    for event in notice["events"]:
        if event["type"] == "DECISION_REJECTED":
            say("rejected", event["data"]["code"], event["data"]["index"], notice["now"])
    if notice["seq"] == 2:
        events.insert(0, decision(notice["now"], "REGISTER_JOB", **REGISTRATIONS[sys.argv[2]]))
        if sys.argv[2] == "no-prefix":  # also a legal one, twice
            job = {"job_id": "d!1", "job": {"id": "d!1", "res": 1, "walltime": 9}, "runtime": 1}
            events.insert(1, decision(notice["now"], "REGISTER_JOB", **job))
            events.insert(2, decision(notice["now"], "REGISTER_JOB", **job))


serve(decide, "dynamic_jobs")

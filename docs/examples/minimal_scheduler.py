import sys

import zmq

server = zmq.Context().socket(zmq.REQ)
server.connect(sys.argv[1])
server.send_json({"type": "HELLO", "data": {"name": "minimal"}})
server.recv_json()  # WELCOME, which is message 0
server.send_json({"reply_to": 0, "now": 0, "events": []})
queue, running = [], {}
while (notice := server.recv_json())["events"][-1]["type"] != "SIMULATION_ENDS":
    decisions = []
    for event in notice["events"]:
        if event["type"] == "SIMULATION_BEGINS":
            free = list(range(event["data"]["nb_resources"]))
        elif event["type"] == "JOB_SUBMITTED":
            queue.append(event["data"]["job"])
        elif event["type"] == "JOB_COMPLETED":
            free += running.pop(event["data"]["job_id"])
    while queue and queue[0]["res"] <= len(free):
        job = queue.pop(0)
        running[job["id"]], free = free[: job["res"]], free[job["res"] :]
        start = {"job_id": job["id"], "alloc": " ".join(map(str, running[job["id"]]))}
        decisions.append({"timestamp": notice["now"], "type": "EXECUTE_JOB", "data": start})
    server.send_json({"reply_to": notice["seq"], "now": notice["now"], "events": decisions})

"""Answers a notice, once two jobs have ended, with a frame of the given KIND."""

import json
import sys

from talk import Fcfs, Server

server, fcfs = Server(), Fcfs()
server.hello()
notice = server.first_notice()
while notice["now"] < 100:
    notice = server.reply(notice, fcfs.decide(notice))
seq, now = notice["seq"], notice["now"]
good = json.dumps({"reply_to": seq, "now": now, "events": []}).encode()
FRAMES = {
    "not-json": b"start everything, please",
    "truncated": good[:-4],
    "trailing": good + b"}",
    "empty": b"",
    "not-utf8": b'\xff\xfe{"reply_to": 1}',
    "nul": b"\0" * 100,
    "null": b"null",
    "array": b"[]",
    "text-seq": json.dumps({"reply_to": str(seq), "now": now, "events": []}).encode(),
    "no-now": json.dumps({"reply_to": seq, "events": []}).encode(),
    "nan": good.replace(b"100.0", b"NaN"),
    "infinite": good.replace(b"100.0", b"1e999"),
    "negative": good.replace(b"100.0", b"-1"),
    "events-object": json.dumps({"reply_to": seq, "now": now, "events": {}}).encode(),
    "unknown-wake": json.dumps({"reply_to": seq, "now": now, "wake": ["JOB_STOLEN"]}).encode(),
    "old-reply-to": json.dumps({"reply_to": seq - 1, "now": now, "events": []}).encode(),
    "new-reply-to": json.dumps({"reply_to": seq + 1, "now": now, "events": []}).encode(),
    "past": json.dumps({"reply_to": seq, "now": now - 1, "events": []}).encode(),
    "deep": b"[" * 200_000,
    "deep-events": good[:-2] + b"[" * 200_000 + b"]" * 200_000 + b"]}",
    "hello-again": json.dumps({"type": "HELLO", "data": {"name": "again"}}).encode(),
    "line-break": b"one\r\npipistrelle: two\x1b[31m",
    "huge": good[:-2] + b" " * 100_000_000 + b"]}",
    "huge-text": b"x" * 100_000_000,
}
server.tell_raw(FRAMES[sys.argv[2]])

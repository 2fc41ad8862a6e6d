"""Introduces itself with the awkward NAMES, and decides correctly."""

import sys

from talk import Fcfs, Server

NAMES = {
    "markup": "[/bold] [red]x[/nonsense]",
    "control": "a\nb\x1b[2Jpipistrelle: c",
    "long": "n" * 100_000,
    "empty": "",
    "wide": "コウモリ 🦇",
}
server, fcfs = Server(), Fcfs()
server.hello(name=NAMES[sys.argv[2]])
notice = server.first_notice()
while True:
    notice = server.reply(notice, fcfs.decide(notice))

"""Frames to messages and back, for the batsim dialect: the JSON of Batsim 3 and 4, without Redis.

The messages are the native ones wherever those say the same (`pipistrelle.protocol.batsim.messages` has the others).
What this wire has otherwise:

- Messages are not numbered: a reply answers the last notice. There is neither a greeting nor a wake filter.
- Times are doubles here, but Batsim and many of its clients print six decimals. A reply's times that lie within
  `ROUNDING` seconds of the notice's are taken as the notice's.
- NO_MORE_JOBS is a NOTIFY, SIMULATION_ENDS says no reason, and calls have no names.
- Batsim refuses fields that it does not know, and so nobody says why (``why``); our own server takes that, and is known
  by the ``server`` beside its first notice's events.
- An illegal decision ends a run: there is no DECISION_REJECTED.
- NODES_FAILED and MAINTENANCE_BEGINS are NOTIFYs of ``event_machine_unavailable``, NODES_REPAIRED and MAINTENANCE_ENDS
  of ``event_machine_available``, whose ``resources`` are the units. Nothing is said of causes, nor ahead.
- A job that comes back after it lost its nodes is a new job of the workload's JSON, ``w0!17#1``: there is no word for
  attempts, nor for what is left to do.

A server uses `encode_notice` and `decode_reply`, a scheduler `decode_notice` and `encode_reply`.
"""

from pipistrelle.protocol.batsim.notices import SERVER, decode_notice, encode_notice, is_ours
from pipistrelle.protocol.batsim.reply_reader import DECISION_TYPES, ROUNDING, decode_reply
from pipistrelle.protocol.batsim.reply_writer import encode_reply

__all__ = [
    "DECISION_TYPES",
    "ROUNDING",
    "SERVER",
    "decode_notice",
    "decode_reply",
    "encode_notice",
    "encode_reply",
    "is_ours",
]

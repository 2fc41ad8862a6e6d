"""Encode and decode frames of the batsim dialect: Batsim 3 and 4 without Redis.

Messages are the native ones if Batsim has the same; `pipistrelle.protocol.batsim.messages` has the others. Differences:

- Messages are not numbered: a reply answers the last notice. There is neither a greeting nor a wake filter.
- Batsim and many clients print times with six decimals, so a reply's time within `ROUNDING` seconds of the notice's
  counts as equal to it.
- NO_MORE_JOBS is a NOTIFY, SIMULATION_ENDS has no reason, and calls have no ids.
- Batsim refuses unknown fields, so ``why`` is not sent, except to our own server, recognised by the field ``server`` in
  its first notice.
- An illegal decision ends the run; there is no DECISION_REJECTED.
- NODES_FAILED and MAINTENANCE_BEGINS are NOTIFYs of ``event_machine_unavailable``, NODES_REPAIRED and MAINTENANCE_ENDS
  of ``event_machine_available``, with the units as ``resources``. Causes and announcements are not sent.
- A job submitted again after losing its nodes is a new job, ``w0!17#1``, without ``attempt`` and ``remaining``.

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

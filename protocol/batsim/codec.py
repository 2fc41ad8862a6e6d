"""Encode and decode frames of the batsim dialect: Batsim 3 and 4 without Redis.

For messages that the native dialect has, too, the structs of `pipistrelle.protocol` are used. Messages that only Batsim
has are in `pipistrelle.protocol.batsim.messages`. Differences from the native dialect:

- Messages have no numbers: a reply answers the last notice. There is neither a greeting nor a wake filter.
- Batsim and many clients print times with six decimals. So a reply's time within `ROUNDING` seconds of the notice's
  time counts as equal to it.
- NO_MORE_JOBS is a NOTIFY, SIMULATION_ENDS has no reason, and calls have no ids.
- Batsim refuses unknown fields, so ``why`` is sent only to our own server. The field ``server`` in the first notice
  identifies our server.
- An illegal decision ends the run; there is no DECISION_REJECTED.
- NODES_FAILED and MAINTENANCE_BEGINS are NOTIFYs of the type ``event_machine_unavailable``. NODES_REPAIRED and
  MAINTENANCE_ENDS are NOTIFYs of the type ``event_machine_available``. The field ``resources`` holds the units. Causes
  and announcements are not sent.
- A job that is submitted again after losing its nodes is a new job, ``w0!17#1``, without ``attempt`` and ``remaining``.

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

"""The protocol of server and scheduler: messages, codec, session, errors, units.

SPEC.md specifies it for other languages. The batsim dialect's functions are named like the native codec's.
"""

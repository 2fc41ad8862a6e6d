"""The protocol of server and scheduler: messages, codec, session, errors, units.

SPEC.md specifies the protocol for other languages. The batsim dialect's functions have the names of the native codec's.
"""

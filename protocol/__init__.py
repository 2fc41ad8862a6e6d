"""The protocol between server and scheduler.

It has messages, codec, session, errors and sets of units. SPEC.md specifies the protocol for other languages. The
functions of the batsim dialect have the same names as those of the native codec.
"""

"""The protocol between server and scheduler: messages, codec, session, errors, sets of units.

SPEC.md in this folder is the text for those who write a scheduler in another language. The batsim dialect's functions
have the native codec's names.
"""

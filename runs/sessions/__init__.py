"""Record all messages of a run in a file (a session).

Replay the file, resume the run, or continue the run under another scheduler.
"""

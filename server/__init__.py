"""The server: the simulated cluster, its jobs and its failures.

`simulate` runs a `Setup` against the scheduler at the other end of a `Transport`.
"""

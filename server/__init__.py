"""Pipistrelle's server: the simulated cluster and everything that happens to it.

`simulate` runs a `Setup` against a scheduler at the other end of a `Transport`.
"""

"""The kernel: a compiled engine for studies.

Its results are the same as those of the reference engine.
"""

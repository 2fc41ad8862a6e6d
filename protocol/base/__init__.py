"""Code that all other packages use.

This is errors, lengths of time, TOML, plain values, and the log.
"""

"""A whole run: engine, loop of notices and replies, and outputs."""

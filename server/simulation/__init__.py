"""A whole run: its engine with the parts it needs, the loop of notices and replies, and its outputs."""

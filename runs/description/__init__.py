"""The description of a run as one value, and the setup made from it."""

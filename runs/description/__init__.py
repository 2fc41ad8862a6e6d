"""The description of a run, and the simulation setup made from it."""

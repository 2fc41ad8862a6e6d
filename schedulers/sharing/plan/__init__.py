"""The plan of shared nodes over time, and the backfilling rules that use it."""

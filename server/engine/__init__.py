"""The clockwork: time, jobs, units, decisions, without any I/O."""

"""The simulation engine: time, jobs, units and decisions, without any I/O."""

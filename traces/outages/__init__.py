"""Read outage logs: LANL's, Titan's, Slurm's, PBS's, Batsim's, and plain tables."""

"""Record an unmodified slurmctld in virtual time."""

"""The cluster as slurmctld sees it: nodes, partitions, jobs and reservations."""

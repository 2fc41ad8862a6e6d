"""What a job requires of its nodes: constraints, units per node, whole nodes."""

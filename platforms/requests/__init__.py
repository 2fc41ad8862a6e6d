"""The requirements of a job on its nodes: constraints, units per node, whole nodes."""

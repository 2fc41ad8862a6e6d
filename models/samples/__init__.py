"""Statistics of replicas: intervals, comparisons, stopping rules."""

"""Statistics of a study's replicas: intervals, comparisons and stopping rules."""

"""Statistics of replicas: intervals, paired differences, break-even points."""

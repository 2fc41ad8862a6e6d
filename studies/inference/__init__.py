"""Statistics of replicas: intervals, paired differences, rankings, break-even points."""

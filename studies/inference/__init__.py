"""What samples of replicas tell: intervals, paired differences, when replicas are enough, break-even points."""

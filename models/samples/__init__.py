"""Means, quantiles and ratios of samples with intervals, paired differences, and when replicas are enough."""

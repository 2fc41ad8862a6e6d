"""Statistics of replicas: means, quantiles and ratios with intervals, stopping rules."""

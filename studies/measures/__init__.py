"""What a study measures in each trial: metrics, windows, classes of jobs, costs, distributions."""

"""What a study measures in each trial, such as metrics, costs and distributions."""

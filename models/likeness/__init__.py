"""Model a log, draw jobs from the model, and measure how similar workloads are."""

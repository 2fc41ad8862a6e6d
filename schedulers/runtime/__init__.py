"""The runtime: folds events into the view and calls the policy."""

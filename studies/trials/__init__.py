"""The description of a study, its trials (simulations) and the table of its results."""

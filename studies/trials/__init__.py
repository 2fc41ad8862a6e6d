"""Describe a study, run its trials (simulations), compute their metrics, and write the table of results."""

"""Description of a study, its trials (simulations), their metrics, and the table of results."""

"""The waiting jobs, and who of them is set aside."""

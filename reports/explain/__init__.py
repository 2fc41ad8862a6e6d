"""Explain why the jobs of a run waited."""

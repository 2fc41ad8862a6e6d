"""Test cases: rerun a run and compare its results with stored (golden) results."""

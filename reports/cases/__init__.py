"""Test cases: runs with known (golden) results, which are repeated to check that the results stay the same."""

"""Cases: runs with known results, repeated to check that the results stay the same."""

"""Output from finished runs: reports, pages, explanations, estimates, golden results."""

"""Commands that simulate one run."""

"""Five papers made anew: which of their tables and figures can be computed, what comes out, and where it differs."""

"""The kernel: a compiled engine for studies, with the same results as the reference engine."""

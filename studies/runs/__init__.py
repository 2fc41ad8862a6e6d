"""One run from one call: in this process, or with its scheduler in another."""

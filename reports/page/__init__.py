"""A run, or several, as one page that opens anywhere."""

"""``pipistrelle study``: many runs and their results."""

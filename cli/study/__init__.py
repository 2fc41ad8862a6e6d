"""``pipistrelle study``: many runs and what they tell together."""

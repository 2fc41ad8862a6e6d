"""How machines fail and are repaired: models, outages, dumps against them."""

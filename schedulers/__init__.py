"""Pipistrelle's schedulers: a policy is order x backfill x placement, or anything with name, order and decide."""

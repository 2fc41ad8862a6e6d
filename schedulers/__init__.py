"""The schedulers: a policy is order x backfill x placement, or any similar object."""

"""Placements and backfilling rules for nodes that several jobs share."""

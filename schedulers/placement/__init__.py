"""Placements: which free units a job gets."""

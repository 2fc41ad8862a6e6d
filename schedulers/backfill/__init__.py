"""Backfilling rules: which jobs may start now."""

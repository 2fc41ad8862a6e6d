"""Backfilling rules: who may start now."""

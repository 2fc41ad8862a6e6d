"""Failures and repairs of nodes: models, outages, checkpointing."""

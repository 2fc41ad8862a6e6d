"""Failures and maintenance of nodes."""

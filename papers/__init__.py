"""Reproduce the tables and figures of five papers."""

"""Reproduction of the tables and figures of five papers."""

"""Readers of a run's output folder: tables as columns of cells, and JSON files."""

"""Partitions by reliability: their sizes, nodes and jobs."""

"""Descriptions of machines: nodes, topology, failures, a library of platforms."""

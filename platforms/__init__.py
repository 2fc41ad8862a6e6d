"""Descriptions of machines: what nodes there are, how they are numbered, and a library of known ones."""

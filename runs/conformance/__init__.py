"""Conformance: awkward situations that the real server plays to a scheduler."""

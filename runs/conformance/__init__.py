"""Conformance tests: a real server tests a scheduler with awkward situations."""

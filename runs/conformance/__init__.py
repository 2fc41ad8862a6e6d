"""Conformance tests: run a scheduler against the real server in difficult situations."""

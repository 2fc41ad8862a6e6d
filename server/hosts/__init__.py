"""Simulated hosts whose speed and load determine how long jobs take."""

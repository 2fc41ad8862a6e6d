"""Simulated hosts that decide how long jobs take."""

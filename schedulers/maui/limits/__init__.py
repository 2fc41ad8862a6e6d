"""Limits of running and waiting jobs per credential."""

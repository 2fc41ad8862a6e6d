"""Scheduling policies.

A policy combines a queue order, a backfilling rule and a placement, or is an object of its own.
"""

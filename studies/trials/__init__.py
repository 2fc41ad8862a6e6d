"""The description of a study, its trials and the table of its results.

A trial is one simulation.
"""

"""Statistics of replicas.

They are intervals, paired differences, rankings and break-even points.
"""

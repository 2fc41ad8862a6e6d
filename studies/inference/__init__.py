"""Statistics over the replicas (repetitions) of a study's trials.

They are intervals, paired differences, rankings and break-even points.
"""

"""Worker processes that run the trials of a study.

Their number and speed do not change the results.
"""

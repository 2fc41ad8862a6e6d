"""Worker processes that run the trials of a study; their number and speed do not change the results."""

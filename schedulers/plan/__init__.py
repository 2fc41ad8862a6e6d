"""The expected future: free units over time, given running jobs and windows."""

"""What is known of the future: running jobs, slices of time, windows."""

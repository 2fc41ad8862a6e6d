"""The queue of waiting jobs, and the limits of job classes that hold jobs back."""

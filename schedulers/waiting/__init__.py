"""The queue of waiting jobs, and the limits of job classes that keep jobs out of it."""

"""Read the files of a Slurm cluster: the machine, the jobs as it takes them, and the scheduler."""

"""Read the state of a live Slurm cluster from the output of Slurm's commands."""

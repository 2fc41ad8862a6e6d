"""Read the state of a live Slurm cluster: what squeue, scontrol, sinfo, sshare and sacct print."""

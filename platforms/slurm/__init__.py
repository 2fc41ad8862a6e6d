"""Files of Slurm: slurm.conf, gres.conf, topology.conf, and the machine that they describe."""

"""Files of Slurm, and the machine that they describe.

The files are slurm.conf, gres.conf and topology.conf.
"""

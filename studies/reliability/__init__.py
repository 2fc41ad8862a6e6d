"""How reliable nodes must be, and how many of them classes of jobs need: a thesis's analysis, and what is exact.

S. Umamaheshwaran, Reliability Guided Resource Allocation for Large-scale Supercomputing Systems, Purdue 2014. Where its
equations or tables cannot be as they are printed, both that and what is right is here, each called what it is.
"""

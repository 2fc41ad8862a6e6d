"""Partitions by reliability: how large each is, which nodes are in it, which jobs go to it."""

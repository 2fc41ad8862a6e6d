"""The program ``pipistrelle-batsim``, for tests that start it as a fork."""

from pipistrelle.cli.__main__ import batsim

batsim()

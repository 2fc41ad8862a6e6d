"""Schedulers that serve Batsim, or Pipistrelle's server in Batsim's dialect."""

"""Workloads: logs in SWF and Batsim's JSON, read, cleaned, described, written, and generated from a seed.

The bundled workloads' names and descriptions are in `pipistrelle.traces.catalogue`.
"""

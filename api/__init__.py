"""The Python API: the names that ``import pipistrelle`` offers."""

"""Find schedulers and their parts by name.

They may be in this package, in other packages, or in users' files.
"""

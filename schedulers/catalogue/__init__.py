"""Find schedulers and their parts by name, in this package, other packages and users' files."""

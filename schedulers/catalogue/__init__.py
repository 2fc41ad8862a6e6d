"""Find schedulers and their parts by name, in this and other packages and in users' files."""

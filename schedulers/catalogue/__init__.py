"""Find schedulers and their parts by name: bundled ones, those of other packages, and users' files."""

"""Show a forecast of a live Slurm cluster: as cells of a table, CSV, JSON and a page."""

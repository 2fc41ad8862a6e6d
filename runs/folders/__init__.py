"""The files of a run's folder, read as columns of cells."""

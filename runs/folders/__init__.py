"""The files of a run's output folder, read as columns of cells."""

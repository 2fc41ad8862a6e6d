"""Expected starts of the jobs that waited at a moment of a run."""

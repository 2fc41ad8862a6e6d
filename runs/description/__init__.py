"""What a run is, as one value, and the setup that it leads to."""

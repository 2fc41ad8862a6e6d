"""What the outputs of runs tell, one beside the other."""

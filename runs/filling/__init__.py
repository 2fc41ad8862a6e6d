"""Fill shared nodes with the pods of a list until most GPUs are requested."""

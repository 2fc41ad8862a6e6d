"""The queue of waiting jobs, and the class limits that set jobs aside."""

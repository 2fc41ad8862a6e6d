"""Everything that a run needs except its scheduler, such as machine, jobs and failures."""

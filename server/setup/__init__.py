"""Everything that a run needs except its scheduler: machine, jobs, dependencies, node requests, failures."""

"""What a run consists of, before its scheduler is known: machine, jobs, dependencies, node requests and failures."""

"""What a run consists of: machine, jobs, requests, conditions and failures."""

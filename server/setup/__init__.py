"""What a run consists of before its scheduler is there: machine, jobs, what they ask and what happens."""

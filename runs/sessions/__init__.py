"""Sessions record all messages of a run, to replay, resume or take over the run."""

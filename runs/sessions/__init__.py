"""Record all messages of a run in a session; replay, resume or take over the run."""

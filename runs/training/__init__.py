"""Learning to schedule: the in-process engine as an environment of Gymnasium."""

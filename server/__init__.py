"""The server: the simulated cluster, its jobs and its failures; see `simulate`."""

"""Commands that make, convert and check inputs."""

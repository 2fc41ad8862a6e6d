"""The parts of the server that only the batsim dialect needs."""

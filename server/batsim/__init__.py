"""Parts that only the batsim dialect needs."""

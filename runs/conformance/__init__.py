"""Whether a scheduler keeps to the protocol: awkward situations, played to it by the real server."""

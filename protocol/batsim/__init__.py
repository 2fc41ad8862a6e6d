"""The other dialect: Batsim's messages, their frames, whose turn it is."""

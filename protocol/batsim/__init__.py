"""The batsim dialect: messages, frames and turns of Batsim 3 and 4."""

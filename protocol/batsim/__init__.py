"""The batsim dialect: messages, frames and sessions of Batsim 3 and 4."""

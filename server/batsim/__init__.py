"""What only Batsim's way of running needs."""

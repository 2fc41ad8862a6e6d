"""The policy ``maui``: configuration, priorities, limits and reservations."""

"""A centre's own Maui: its configuration, priorities, limits, reservations and fills."""

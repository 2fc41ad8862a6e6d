"""Plans of which units will be free at which time, given running jobs, reservations and windows."""

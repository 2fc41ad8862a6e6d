"""Plans of when units will be free, given running jobs, reservations and windows."""

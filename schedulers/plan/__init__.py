"""The planned future: which units will be free when, given running jobs, reservations and windows."""

"""Job logs: SWF, sacct, PBS, Maui and Haizea leases, and what their readers share."""

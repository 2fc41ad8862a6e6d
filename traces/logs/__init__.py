"""Job logs: SWF, sacct, PBS, Maui and Haizea leases, and code that readers share."""

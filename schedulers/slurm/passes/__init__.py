"""The passes of slurmctld: main loop, backfill, and what decides in them."""

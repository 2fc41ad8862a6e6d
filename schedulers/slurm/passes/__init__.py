"""The passes of slurmctld over the queue (main loop, backfill), and the tests that they apply."""

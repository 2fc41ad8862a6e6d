"""How much of the machine somebody may have at once, and how many jobs are looked at."""

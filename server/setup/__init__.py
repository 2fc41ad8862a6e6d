"""Everything that a run needs except its scheduler.

This includes the machine, the jobs and the failures.
"""

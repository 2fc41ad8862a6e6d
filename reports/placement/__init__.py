"""Measure where jobs ran: hops, stable nodes and failures, also for other node orders."""

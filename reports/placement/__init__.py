"""Measure where jobs ran: hops, stable nodes and failures.

This is also done for other node orders.
"""

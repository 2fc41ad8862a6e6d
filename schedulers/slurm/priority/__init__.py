"""Priorities: factors of jobs, fairshare of associations, decay of usage."""

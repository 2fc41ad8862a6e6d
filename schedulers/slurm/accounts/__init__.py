"""Accounts, users and QOS: what they use, and the limits that hold their jobs."""

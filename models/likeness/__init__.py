"""Workloads like a log: models of logs, jobs drawn by them, and how alike two workloads are."""

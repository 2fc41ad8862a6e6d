"""Workload models, failure models fitted to logs, reliability, and statistics."""

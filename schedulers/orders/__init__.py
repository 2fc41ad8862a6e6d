"""The orders in which queued jobs are considered."""

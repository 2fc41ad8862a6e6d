"""Models fitted to observed failures, and what logs of them are like."""

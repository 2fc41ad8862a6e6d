"""What every layer leans on: errors, the log, versions, imports on first use."""

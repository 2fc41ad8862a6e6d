"""Terminal output: text, tables, dates, progress, exit codes."""

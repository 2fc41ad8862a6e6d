"""What every command does on the terminal: text, tables, dates, progress, exit codes."""

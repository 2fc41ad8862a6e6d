"""What every layer leans on: errors, lengths of time, TOML, plain values, the log, versions."""

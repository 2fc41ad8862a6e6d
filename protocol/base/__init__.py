"""Parts for every layer: errors, lengths of time, TOML, plain values, the log."""

"""Parts that every layer uses: errors, lengths of time, TOML, plain values, the log."""

"""Code that all other packages use: errors, lengths of time, TOML, plain values, the log."""

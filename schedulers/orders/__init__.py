"""Orders: who comes first."""

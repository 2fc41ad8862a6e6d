"""Views of a running simulation: terminal and browser."""

"""Commands for authors of schedulers."""

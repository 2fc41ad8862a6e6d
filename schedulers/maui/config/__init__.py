"""Reading of maui.cfg files."""

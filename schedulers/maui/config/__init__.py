"""Read maui.cfg files."""

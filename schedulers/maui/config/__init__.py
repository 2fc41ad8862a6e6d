"""Reading a maui.cfg."""

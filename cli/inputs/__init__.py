"""Commands for inputs: bundled files, validation, failures."""

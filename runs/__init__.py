"""One run: its description, inputs, execution, sessions and conformance checks."""

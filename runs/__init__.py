"""One run from one description of it, its inputs, its sessions, and schedulers tried for conformance."""

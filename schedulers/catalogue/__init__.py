"""Parts and schedulers by name: the library, other packages, a user's own file."""

"""Parts and schedulers by name: the library's, other packages' and user files."""

"""Work that takes as long as its hosts decide."""

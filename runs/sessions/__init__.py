"""Sessions: runs recorded frame by frame, replayed, resumed and taken over."""

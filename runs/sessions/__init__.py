"""Sessions: a run recorded frame by frame, played to a scheduler or to the server again; two runs compared."""

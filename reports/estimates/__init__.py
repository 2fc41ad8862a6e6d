"""When was each job that waited expected to start, at a moment of a run, and how wrong was that?"""

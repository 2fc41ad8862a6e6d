"""How does a run show itself while it goes on: in a terminal, or to a browser?"""

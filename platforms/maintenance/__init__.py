"""Which nodes are down for planned maintenance, from when until when, and from when on is that known?"""

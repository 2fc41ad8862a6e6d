"""Which observers listen to which hook, worked out once so that an unused hook costs nothing."""

from collections.abc import Sequence

from pipistrelle.server.observers import Observer


class Hooks:
    """One tuple of bound methods for each hook of `Observer`, holding only the overridden ones."""

    __slots__ = ("begins", "decided", "ended", "ends", "settled", "started", "submitted")

    def __init__(self, observers: Sequence[Observer]) -> None:
        self.begins = tuple(o.begins for o in observers if type(o).begins is not Observer.begins)
        self.submitted = tuple(o.submitted for o in observers if type(o).submitted is not Observer.submitted)
        self.started = tuple(o.started for o in observers if type(o).started is not Observer.started)
        self.ended = tuple(o.ended for o in observers if type(o).ended is not Observer.ended)
        self.decided = tuple(o.decided for o in observers if type(o).decided is not Observer.decided)
        self.settled = tuple(o.settled for o in observers if type(o).settled is not Observer.settled)
        self.ends = tuple(o.ends for o in observers if type(o).ends is not Observer.ends)

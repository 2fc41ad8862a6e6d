"""Which observers listen to which hook, worked out once so that an unused hook costs nothing."""

from collections.abc import Sequence

from pipistrelle.server.engine.observers import Observer


class Hooks:
    """One tuple of bound methods for each hook of `Observer`, for the observers that listen to it."""

    __slots__ = (
        "arrived",
        "availability",
        "begins",
        "came_up",
        "decided",
        "departed",
        "ended",
        "ends",
        "settled",
        "started",
        "submitted",
        "switched",
        "went_down",
    )

    def __init__(self, observers: Sequence[Observer]) -> None:
        self.begins = tuple(o.begins for o in observers if o.listens("begins"))
        self.submitted = tuple(o.submitted for o in observers if o.listens("submitted"))
        self.started = tuple(o.started for o in observers if o.listens("started"))
        self.ended = tuple(o.ended for o in observers if o.listens("ended"))
        self.decided = tuple(o.decided for o in observers if o.listens("decided"))
        self.settled = tuple(o.settled for o in observers if o.listens("settled"))
        self.switched = tuple(o.switched for o in observers if o.listens("switched"))
        self.departed = tuple(o.departed for o in observers if o.listens("departed"))
        self.arrived = tuple(o.arrived for o in observers if o.listens("arrived"))
        self.availability = tuple(o.availability for o in observers if o.listens("availability"))
        self.went_down = tuple(o.went_down for o in observers if o.listens("went_down"))
        self.came_up = tuple(o.came_up for o in observers if o.listens("came_up"))
        self.ends = tuple(o.ends for o in observers if o.listens("ends"))

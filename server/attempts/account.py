"""What became of an attempt's time, as a course tells it."""

from typing import Final, NamedTuple

from pipistrelle.server.attempts.segment import Phase


class Account(NamedTuple):
    """What became of an attempt's time.

    ``saved`` and ``unsaved`` are seconds of the job's work on its whole allocation: what another attempt could begin
    from (all of it once the work is done), and what came after that. All that begins with ``node_`` is in node-seconds;
    together they are the allocation's nodes times the time since the start.
    """

    saved: float
    unsaved: float
    dumps: int
    reads: int
    #: failures that the allocation survived, and nodes that it has lost
    survived: int
    nodes_lost: int
    #: work that is saved or done, work since then, and work that was rolled back
    node_useful: float
    node_unsaved: float
    node_lost: float
    node_dumping: float
    node_reading: float
    #: nodes that were up and did nothing, and nodes that were down and held
    node_spare: float
    node_down: float
    #: seconds that went on with dumps and reads
    dumping: float
    reading: float
    #: nodes of the allocation
    nodes: int

    @property
    def node_seconds(self) -> float:
        """All node-seconds together."""
        work = self.node_useful + self.node_unsaved + self.node_lost
        return work + self.node_dumping + self.node_reading + self.node_spare + self.node_down


#: how far a segment has come that has not begun
NOTHING: Final = Phase(0.0, 0.0, 0.0, 0.0, 0)

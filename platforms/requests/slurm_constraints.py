"""Replace brackets and counts in Slurm's constraints by plain constraints.

A plain constraint restricts each node by itself. ``[a|b]`` requires that all nodes meet the same alternative, and
``a*2`` that at least two nodes have a feature. For a given job and machine there is often an equivalent plain
constraint. If there is none, the job is refused, so that it never starts on nodes that it did not request.
"""

from collections.abc import Sequence
from typing import Final

from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.requests.constraints import Constraint, FeatureCount, OneOf, Several, Word, read_slurm
from pipistrelle.protocol.base.errors import quoted
from pipistrelle.protocol.events import PoolInfo
from pipistrelle.protocol.units.nodesets import NodeSet

_MARKS: Final = frozenset("[*")
_HINT: Final = "a constraint on each node by itself"


def plain_constraint(text: str, nodes: int | None, kinds: Sequence[PoolInfo]) -> str:
    """Return an equivalent constraint without brackets and counts.

    Args:
        nodes: the number of the job's nodes; None if it is unknown.
        kinds: the machine's pools, or parts of pools with equal nodes.

    Raises:
        PlatformError: if the constraint cannot be parsed or has no equivalent.
    """
    if _MARKS.isdisjoint(text):
        return text
    return str(_Plain(text, nodes, kinds).of(read_slurm(text), under_or=False))


class _Plain:
    def __init__(self, text: str, nodes: int | None, kinds: Sequence[PoolInfo]) -> None:
        self._text, self._nodes, self._kinds = text, nodes, kinds

    def of(self, part: "Constraint | FeatureCount | OneOf", *, under_or: bool) -> Constraint:
        if isinstance(part, Word):
            return part
        if isinstance(part, Several):
            inner = under_or or not part.every
            return Several(tuple(self.of(one, under_or=inner) for one in part.parts), part.every)
        if under_or:
            raise self._fault("has a list in brackets or a count among alternatives")
        return self._counted(part) if isinstance(part, FeatureCount) else self._one_of(part)

    def _counted(self, part: FeatureCount) -> Constraint:
        """Return the plain feature ``a`` in place of ``a*2``.

        ``a*2`` wants two nodes with the feature. The two mean the same if the job has two nodes, or if all nodes have
        the feature. Raise PlatformError otherwise.
        """
        if part.count == self._nodes or (part.count <= (self._nodes or 0) and all(map(part.word.met_by, self._kinds))):
            return part.word
        if self._nodes is None:
            raise self._fault(f"counts nodes ({part}), but the job's number of nodes is unknown")
        raise self._fault(f"counts {part.count} nodes of {self._nodes} ({part}), which is not supported")

    def _one_of(self, part: OneOf) -> Constraint:
        """Return an equivalent of ``[a

        b]``.|``[a|b]`` wants all nodes of a job to meet the same alternative. For a job on one node, the equivalent is
        ``a|b``. Otherwise it is the alternative that includes all others with enough nodes. Raise PlatformError if
        there is no such alternative.
        """
        several = [self.of(one, under_or=False) for one in part.parts]
        if len(several) == 1:
            return several[0]
        if self._nodes == 1:
            return Several(tuple(several), every=False)
        met = [frozenset(at for at, kind in enumerate(self._kinds) if one.met_by(kind)) for one in several]
        sizes = [sum(len(NodeSet.parse(self._kinds[at].nodes)) for at in kinds) for kinds in met]
        enough = [at for at, size in enumerate(sizes) if size >= (self._nodes or 1)]
        if not enough:
            most = max(sizes)
            raise self._fault(f"wants nodes of one alternative, the one with most has {most}")
        for at in enough:
            if all(met[other] <= met[at] for other in enough):
                return several[at]
        raise self._fault("wants nodes of one alternative, and of several there are enough, which is not supported")

    def _fault(self, what: str) -> PlatformError:
        return PlatformError(f"the constraint {what}", expected=_HINT, found=quoted(self._text))

from pipistrelle.schedulers.backfill.easy import Easy
from pipistrelle.schedulers.composed import ComposedPolicy
from pipistrelle.schedulers.placement.lowest import LowestIds


class Widest:
    def rank(self, job):
        return -job.size


def widest_first():
    return ComposedPolicy("widest-first", order=Widest(), backfill=Easy(), placement=LowestIds())

from pipistrelle.schedulers.backfill.easy import Easy
from pipistrelle.schedulers.placement.lowest import LowestIds
from pipistrelle.schedulers.policy.compose import ComposedPolicy


class Widest:
    def rank(self, job):
        return -job.size


def widest_first():
    return ComposedPolicy("widest-first", order=Widest(), backfill=Easy(), placement=LowestIds())

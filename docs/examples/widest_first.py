from pipistrelle.schedulers.backfill import Easy
from pipistrelle.schedulers.placement import LowestIds
from pipistrelle.schedulers.policy import ComposedPolicy


class Widest:
    def rank(self, job):
        return -job.size


def widest_first():
    return ComposedPolicy("widest-first", order=Widest(), backfill=Easy(), placement=LowestIds())

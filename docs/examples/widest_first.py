import pipistrelle as pp


class Widest:
    def rank(self, job):
        return -job.size


def widest_first():
    return pp.ComposedPolicy("widest-first", order=Widest(), backfill=pp.Easy(), placement=pp.LowestIds())

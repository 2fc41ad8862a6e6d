from collections import defaultdict, deque

import pipistrelle as pp


class Predicting(pp.Scheduler):
    """EASY backfilling with predicted run times: the mean of the user's last two."""

    name = "predicting"

    def __init__(self):
        self.last = defaultdict(lambda: deque(maxlen=2))

    def decide(self, view):
        for job, end, _ in view.ended:
            self.last[job.description.user].append(end - job.start)
        while (first := view.waiting.first) is not None and view.fits(first):
            view.start(first)
        if first is None:
            return
        shadow, extra = self.reserve(view, first)
        for job in sorted(list(view.waiting)[1:], key=self.predicted):
            in_time = view.now + self.predicted(job) <= shadow
            if (in_time or job.size <= extra) and view.fits(job):
                view.start(job, why=f"predicted not to delay {first.id}")
                if not in_time:
                    extra -= job.size

    def predicted(self, job):
        times = self.last[job.description.user]
        return min(sum(times) / len(times), job.walltime) if times else job.walltime

    def end(self, view, job):
        predicted = job.start + self.predicted(job)
        return predicted if predicted > view.now else job.expected_end  # the prediction was too short

    def reserve(self, view, first):
        free = len(view.open_to(first))
        for end, size in sorted((self.end(view, job), job.size) for job in view.running):
            free += size
            if free >= first.size:
                return end, free - first.size
        return float("inf"), 0

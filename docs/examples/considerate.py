from pipistrelle.schedulers.orders.fixed import Fcfs
from pipistrelle.schedulers.placement.lowest import LowestIds


class Considerate:
    name = "considerate"
    order = Fcfs()

    def decide(self, view):
        while (first := view.waiting.first) is not None and self.start(view, first, None):
            pass
        if first is None:
            return
        shadow, extra = view.running.reserve(first.size, len(view.open_to(first)))
        for job in list(view.waiting)[1:]:
            in_time = view.now + job.occupies <= shadow
            if (in_time or job.size <= extra) and self.start(view, job, f"does not delay {first.id}") and not in_time:
                extra -= job.size

    def start(self, view, job, why):
        units = LowestIds().pick(job, view.open_to(job), view.machine)
        if units is None:
            return False
        view.free.remove(units)
        view.start(job, units, why)
        return True

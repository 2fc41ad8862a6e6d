import pipistrelle as pp


class Considerate:
    name = "considerate"
    order = pp.Fcfs()

    def decide(self, view):
        while (first := view.waiting.first) is not None and view.fits(first):
            view.start(first)
        if first is None:
            return
        shadow, extra = view.running.reserve(first.size, len(view.open_to(first)))
        for job in list(view.waiting)[1:]:
            in_time = view.now + job.occupies <= shadow
            if (in_time or job.size <= extra) and view.fits(job):
                view.start(job, why=f"does not delay {first.id}")
                if not in_time:
                    extra -= job.size

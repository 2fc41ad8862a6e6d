import pipistrelle as pp


class Impatient:
    name = "impatient"
    order = pp.Sjf()
    features = ("preemption",)

    def decide(self, view):
        for job in list(view.waiting):
            if view.fits(job):
                view.start(job)
        first = view.waiting.first
        if first is None or first.walltime > 300 or view.going:
            return
        long = [job for job in view.running if job.walltime > 300 and job.start < view.now]
        if long and first.size <= view.free.count + max(job.size for job in long):
            view.preempt(max(long, key=lambda job: (job.size, job.number)), "requeue", why=f"for {first.id}")

from pipistrelle.schedulers.orders.fixed import Sjf

DAY = 86400.0


class Patient:
    name = "patient"
    order = Sjf()

    def decide(self, view):
        overdue = [job for job in view.waiting if view.now - job.submit > DAY]
        for job in sorted(overdue, key=lambda job: job.submit):
            if job.size > view.free.count:
                return
            view.start(job, why="waited for a day")
        for job in list(view.waiting):
            if job.size <= view.free.count:
                view.start(job)

from pipistrelle.schedulers.orders.fixed import Sjf


class ShortestFirst:
    name = "shortest-first"
    order = Sjf()

    def decide(self, view):
        for job in list(view.waiting):
            if view.fits(job):
                view.start(job, why="the shortest that fits")

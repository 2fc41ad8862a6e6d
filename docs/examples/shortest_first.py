import pipistrelle as pp


class ShortestFirst:
    name = "shortest-first"
    order = pp.Sjf()

    def decide(self, view):
        for job in list(view.waiting):
            if view.fits(job):
                view.start(job, why="the shortest that fits")

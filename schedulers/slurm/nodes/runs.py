"""Best fit among runs of consecutive nodes, as both of Slurm's selectors apply it."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from pipistrelle.schedulers.slurm.cluster.bits import mask_of, runs_of


class NodeRun(Struct):
    """A run of consecutive usable nodes of one weight: (node, usable CPUs) in ascending order."""

    weight: int
    nodes: list[tuple[int, int]]
    cpus: int
    required: bool = False


def make_runs(usable: Sequence[tuple[int, int]], weight: Sequence[int], required: int = 0) -> list[NodeRun]:
    """Group usable nodes, given as (node, usable CPUs) in ascending order, into runs."""
    runs: list[NodeRun] = []
    last = -2
    for at, cpus in usable:
        if last == at - 1 and runs[-1].weight == weight[at]:
            run = runs[-1]
            run.nodes.append((at, cpus))
            run.cpus += cpus
        else:
            run = NodeRun(weight[at], [(at, cpus)], cpus)
            runs.append(run)
        if required and required >> at & 1:
            run.required = True
        last = at
    return runs


def best_run(runs: Sequence[NodeRun | None], nodes: int, cpus: int) -> int | None:
    """Return the position of the run to use next; None if no run is left.

    Runs of the lowest weight come first. Of these, the smallest run that suffices is used, or else the largest.
    """
    best: int | None = None
    best_cpus = best_weight = 0
    best_enough = best_required = False
    for at, run in enumerate(runs):
        if run is None:
            continue
        enough = run.cpus >= cpus and len(run.nodes) >= nodes
        if (
            best is None
            or (run.required and not best_required)
            or run.weight < best_weight
            or (
                run.weight == best_weight
                and run.required == best_required
                and (
                    (enough and not best_enough)
                    or (enough and run.cpus < best_cpus)
                    or (not enough and run.cpus > best_cpus)
                )
            )
        ):
            best, best_cpus, best_enough, best_weight, best_required = at, run.cpus, enough, run.weight, run.required
    return best


def pick_equal(open_nodes: int, count: int, by_weight: Sequence[tuple[int, int]], *, contiguous: bool = False) -> int:
    """Return ``count`` open nodes of a cluster whose nodes have equal CPUs; 0 if too few are open.

    The result equals that of `best_run`, but is computed faster.
    """
    if open_nodes.bit_count() < count:
        return 0
    taken = 0
    for _, group in by_weight:
        runs = runs_of(open_nodes & group)
        while runs and count > 0:
            best = -1
            best_length = 0
            enough = False
            for at, (_, length) in enumerate(runs):
                if length >= count:
                    if not enough or length < best_length:
                        best, best_length, enough = at, length, True
                elif not enough and length > best_length:
                    best, best_length = at, length
            if contiguous and not enough:
                break
            first, length = runs.pop(best)
            use = min(length, count)
            taken |= ((1 << use) - 1) << first
            count -= use
        if count <= 0:
            return taken
    return 0


def with_counts(wanted: Sequence[tuple[int, int]], total: int, open_nodes: int, pick: Callable[[int, int], int]) -> int:
    """Return nodes for a constraint such as ``[a*2&b*4]``, and further ones: ``total`` in all.

    The result is 0 if there are too few.

    Args:
        wanted: ((set of nodes, number needed), ...).
        pick: returns the given number of nodes from a set of open nodes, or 0.
    """
    taken = 0
    for nodes, count in wanted:
        some = pick(open_nodes & nodes & ~taken, count)
        if not some:
            return 0
        taken |= some
    rest = total - taken.bit_count()
    if rest > 0:
        more = pick(open_nodes & ~taken, rest)
        if not more:
            return 0
        taken |= more
    return taken


def usable_mask(usable: Sequence[tuple[int, int]]) -> int:
    """Return the set of the usable nodes."""
    return mask_of(at for at, _ in usable)

"""``pipistrelle workload filter|scale|merge|shuffle|copy``: what each of these steps does with a workload."""

from collections.abc import Callable
from typing import Any, TypeVar

import click
import numpy as np

from pipistrelle.cli.options.shared import PositiveNumber
from pipistrelle.cli.workload.steps import Step, one_source, places
from pipistrelle.protocol.base.lengths import parse_seconds
from pipistrelle.studies.workloads.options import (
    parse_factor,
    parse_gaps,
    parse_range,
    parse_units,
    set_walltimes,
    signed_seconds,
    trace_time,
    zone_of,
)
from pipistrelle.studies.workloads.selection import FIELDS, Conditions, choose
from pipistrelle.traces.transforms.arrivals import redraw_submits, shuffle_submits
from pipistrelle.traces.transforms.cut import from_zero
from pipistrelle.traces.transforms.join import Align, Draw, copies, merge
from pipistrelle.traces.transforms.scale import (
    scale_arrivals,
    scale_machine,
    scale_runtimes,
    scale_sizes,
    scale_to_load,
)
from pipistrelle.traces.workload import Workload

_C = TypeVar("_C", bound=Callable[..., Any])

_NAMED = {"application": ", a number.", "status": ", a number.", "state": ", as the log names it."}
_SEED = click.option(
    "--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Equal seeds give equal bytes."
)


def _rng(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


def _field_options(function: _C) -> _C:
    for name in reversed(FIELDS):
        text = f"Only jobs of this {name}" + _NAMED.get(name, ".")
        function = click.option(f"--{name}", multiple=True, metavar="VALUE[,VALUE...]", help=text)(function)
    return function


@click.command("filter", cls=Step)
@one_source
@click.option("--begin", metavar="TIME", help="Only jobs submitted from then on: a date, or a time after time 0.")
@click.option("--end", metavar="TIME", help="Only jobs submitted before then.")
@click.option("--timezone", metavar="ZONE", help="Zone of the dates, as Europe/Paris; default: the trace's, else UTC.")
@click.option("--size", metavar="MIN:MAX", help="Only jobs of so many units; bounds included, either may be left out.")
@click.option("--runtime", metavar="MIN:MAX", help="Only jobs that run so long, as 1h:24h.")
@click.option("--walltime", metavar="MIN:MAX", help="Only jobs that ask for so much time.")
@_field_options
@click.option("--invert", is_flag=True, help="Keep the jobs that do not fulfil all of the conditions above.")
@click.option("--clean", is_flag=True, help="Leave out the jobs that cannot run.")
@click.option("--first", type=click.IntRange(min=1), metavar="NUMBER", help="Take so many of the first jobs left.")
@click.option("--last", type=click.IntRange(min=1), metavar="NUMBER", help="Take so many of the last jobs left.")
@click.option("--sample", metavar="NUMBER|P%", help="Take so many of the jobs left, by chance.")
@_SEED
@click.option("--rebase", is_flag=True, help="Move time 0, and the date it has, to the first job.")
def filter_step(
    workload: Workload,
    begin: str | None,
    end: str | None,
    timezone: str | None,
    size: str | None,
    runtime: str | None,
    walltime: str | None,
    invert: bool,
    clean: bool,
    first: int | None,
    last: int | None,
    sample: str | None,
    seed: int,
    rebase: bool,
    **fields: tuple[str, ...],
) -> Workload:
    """Write the jobs of the workload IN that fulfil all conditions.

    IN is a bundled name or a file. A value of a field may be one of several: --user 3,7 or --user 3 --user 7. Ids and
    submit times stay; jobs no longer wait for those that are left out.
    """
    named = {name: [one for text in texts for one in text.split(",")] for name, texts in fields.items() if texts}
    bounds = (begin, end, size, runtime, walltime)
    if invert and not named and all(bound is None for bound in bounds):
        raise click.UsageError("--invert needs a condition.")
    if timezone is not None and begin is None and end is None:
        raise click.UsageError("--timezone goes with --begin and --end.")
    if not (named or clean or rebase) and all(one is None for one in (*bounds, first, last, sample)):
        raise click.UsageError("give at least one condition.")
    # The zone is needed for times only: a strange one in a header stops nothing else.
    zone = None if begin is None and end is None else zone_of(workload, timezone)
    conditions = Conditions(
        begin=-np.inf if begin is None or zone is None else trace_time(workload, begin, zone),
        end=np.inf if end is None or zone is None else trace_time(workload, end, zone),
        size=None if size is None else parse_range(size, parse_units, "range of sizes"),
        runtime=None if runtime is None else parse_range(runtime, signed_seconds, "range of run times"),
        walltime=None if walltime is None else parse_range(walltime, signed_seconds, "range of requested times"),
        fields=named,
    )
    chosen = choose(
        workload, conditions, invert=invert, runnable=clean, first=first, last=last, share=sample, rng=_rng(seed)
    )
    return from_zero(chosen) if rebase else chosen


@click.command("scale", cls=Step)
@one_source
@click.option(
    "--machine", type=click.IntRange(1, 2**31), metavar="UNITS", help="Fit the sizes to a machine this large."
)
@click.option("--sizes", metavar="FACTOR", help="Multiply the sizes, and round them.")
@click.option("--runtimes", metavar="FACTOR", help="Multiply the run times; requested times stay.")
@click.option(
    "--walltime",
    "--wallclock-limit",
    metavar="LIMIT",
    help="Set the requested times: 12h; 101% or 50%:150% of the run time; 100:3000 by chance; x2; none.",
)
@click.option(
    "--arrivals", metavar="FACTOR", help="Multiply the times since the first submission: 50% is twice as fast."
)
@click.option("--load", type=PositiveNumber(), help="Scale arrivals so that this load is offered, as 0.9.")
@click.option("--units", type=click.IntRange(1, 2**31), help="For --load: the machine's size; default: the trace's.")
@_SEED
def scale_step(
    workload: Workload,
    machine: int | None,
    sizes: str | None,
    runtimes: str | None,
    walltime: str | None,
    arrivals: str | None,
    load: float | None,
    units: int | None,
    seed: int,
) -> Workload:
    """Write the workload IN with sizes, times or arrivals changed, in the order of the options below.

    IN is a bundled name or a file. A FACTOR is a number above 0 or a percentage: 0.5 or 50%.
    """
    if arrivals is not None and load is not None:
        raise click.UsageError("give either --arrivals or --load.")
    if units is not None and load is None:
        raise click.UsageError("--units goes with --load.")
    if all(one is None for one in (machine, sizes, runtimes, walltime, arrivals, load)):
        raise click.UsageError("say what to scale.")
    if machine is not None:
        workload = scale_machine(workload, machine)
    if sizes is not None:
        workload = scale_sizes(workload, parse_factor(sizes))
    if runtimes is not None:
        workload = scale_runtimes(workload, parse_factor(runtimes))
    if walltime is not None:
        workload = set_walltimes(workload, walltime, _rng(seed))
    if arrivals is not None:
        workload = scale_arrivals(workload, parse_factor(arrivals))
    return workload if load is None else scale_to_load(workload, load, units)


@click.command("merge", cls=Step)
@click.argument("sources", metavar="IN...", nargs=-1)
@places
@click.option(
    "--align",
    type=click.Choice(["auto", "date", "zero", "first"]),
    default="auto",
    show_default=True,
    help="What is at the same time: equal dates, the times 0, or the first jobs; auto: dates if all have them, else 0.",
)
@click.option(
    "--apart", is_flag=True, help="Users, groups, queues and so on of different workloads are different ones."
)
def merge_step(workload: Workload, align: str, apart: bool, others: list[Workload]) -> Workload:
    """Write the jobs of several workloads as one.

    Each IN is a bundled name or a file. Jobs are numbered anew if an id occurs twice.
    """
    if not others:
        raise click.UsageError("name the workloads to merge.")
    everything = [workload, *others]
    how: Align = "date" if all(one.epoch is not None for one in everything) else "zero"
    if align != "auto":
        how = align  # type: ignore[assignment]  # click checked it
    by = {"date": "equal dates", "zero": "their times 0", "first": "their first jobs"}[how]
    click.echo(f"merge: {by} are at the same time")
    return merge(everything, how, apart=apart)


@click.command("shuffle", cls=Step)
@one_source
@click.option("--within", metavar="TIME", help="Exchange submit times only inside windows of this length, as 1d.")
@click.option(
    "--submission-time",
    metavar="GAPS",
    help="Draw new submit times instead, the jobs in their order: 100:fixed, 200:exp (mean), 0:200:unif.",
)
@_SEED
def shuffle_step(workload: Workload, within: str | None, submission_time: str | None, seed: int) -> Workload:
    """Write the workload IN with its submit times dealt out anew among its jobs.

    IN is a bundled name or a file.
    """
    if submission_time is not None:
        if within is not None:
            raise click.UsageError("give either --within or --submission-time.")
        return redraw_submits(workload, parse_gaps(submission_time), _rng(seed))
    window = np.inf if within is None else parse_seconds(within, "window")
    return shuffle_submits(workload, _rng(seed), window)


@click.command("copy", cls=Step)
@one_source
@click.option(
    "--times", type=click.IntRange(1, 1_000_000), required=True, help="How often each job is there in the end."
)
@click.option("--every", metavar="TIME", help="Submit the k-th copy k times this later: 7d repeats a week.")
@click.option(
    "--shift", metavar="TIME|MIN:MAX", help="Submit copies so much later, or by chance between; may be negative."
)
@click.option(
    "--draw",
    type=click.Choice(["job", "copy", "once"]),
    default="job",
    show_default=True,
    help="How often a --shift by chance is drawn: for each job, each copy, or once.",
)
@click.option("--submission-time", metavar="GAPS", help="Draw submit times of the copies, as with 'shuffle'.")
@_SEED
def copy_step(
    workload: Workload,
    times: int,
    every: str | None,
    shift: str | None,
    draw: Draw,
    submission_time: str | None,
    seed: int,
) -> Workload:
    """Write the workload IN with each job several times.

    IN is a bundled name or a file. A copy waits for the copies of the jobs that its original waits for.
    """
    if submission_time is not None and (shift is not None or every is not None):
        raise click.UsageError("--submission-time goes without --shift and --every.")
    moved = parse_range(shift, signed_seconds, "range of shifts") if shift is not None else (0.0, 0.0)
    if not np.all(np.isfinite(moved)):
        raise click.UsageError("--shift needs both bounds: MIN:MAX.")
    return copies(
        workload,
        times,
        _rng(seed),
        every=0.0 if every is None else parse_seconds(every, "time between copies"),
        shift=(moved[0], moved[1]),
        draw=draw,
        gaps=None if submission_time is None else parse_gaps(submission_time),
    )

"""``pipistrelle workload generate`` and ``model``: random workloads."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pipistrelle.cli.options.fields import PositiveNumber, ShareNumber
from pipistrelle.cli.options.files import output_option
from pipistrelle.cli.options.names import completed
from pipistrelle.cli.options.sections import Command
from pipistrelle.cli.terminal.guard import refuse_overwriting
from pipistrelle.cli.workload.compare import page_option, write_page

_C = TypeVar("_C", bound=Callable[..., Any])
# Not needed for the help.
if TYPE_CHECKING:
    from pipistrelle.models.likeness.model import WorkloadModel
    from pipistrelle.traces.workload import Workload


def _serial_option(text: str, default: str) -> Callable[[_C], _C]:
    """Return the option ``--serial``.

    ``text`` is its help, and ``default`` says what holds without it.
    """
    return click.option("--serial", metavar="SHARE", type=ShareNumber(), show_default=default, help=text)


@click.command("generate", cls=Command)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    show_default="5000; with --like: as in the model",
    help="Number of jobs to draw.",
)
@click.option(
    "--machine-size",
    type=click.IntRange(min=1),
    show_default="256; with --like: as in the log",
    help="Size of the machine in units (nodes or processors).",
)
@click.option("--seed", type=click.IntRange(min=0), default=1, help="Random seed.")
@click.option(
    "--load",
    type=PositiveNumber(),
    show_default="0.85; with --classes or --like: as in the file",
    help="Offered load: requested node time / available node time, such as 0.9.",
)
@click.option(
    "--classes",
    metavar="NAME|FILE",
    shell_complete=completed("classes", or_file=True),
    help="Draw jobs by classes, each with its own sizes and run times: 'intrepid-classes' or a TOML file.",
)
@click.option(
    "--like",
    metavar="NAME|FILE",
    shell_complete=completed("model", or_file=True),
    help="Draw jobs with the statistics of this log or fitted model.",
)
@_serial_option("With --like: share of jobs that use one node or processor, such as 47.5%.", "as in the log or model")
@click.option("--duration", metavar="TIME", help="With --classes or --like: length of the workload, such as '7d'.")
@page_option("With --like LOG: write a comparison with LOG, as .html or .svg.")
@output_option("File to write: .swf, .json, .sacct, .maui; .gz or .xz compresses.")
def generate_command(
    jobs: int | None,
    machine_size: int | None,
    seed: int,
    load: float | None,
    classes: str | None,
    like: str | None,
    output: Path,
    **others: Any,
) -> None:
    """Generate random jobs: with daily and weekly cycles, by job classes, or like a log."""
    from pipistrelle.traces.errors import counted
    from pipistrelle.traces.generator import generate
    from pipistrelle.traces.load import not_kept, save

    if classes is not None and like is not None:
        raise click.UsageError("--classes and --like exclude each other: omit one of them.")
    if like is None and (given := [name for name in ("serial", "page") if others[name] is not None]):
        raise click.UsageError(f"--{given[0]} needs --like.")
    if like is not None:
        workload = _like(like, output, seed, machine_size, jobs=jobs, load=load, **others)
    elif classes is not None:
        workload = _by_classes(classes, output, seed, (jobs, machine_size), load=load, duration=others["duration"])
    elif others["duration"] is not None:
        raise click.UsageError("--duration needs --classes or --like. Otherwise it follows from --jobs and --load.")
    else:
        workload = generate(
            jobs=5000 if jobs is None else jobs,
            units=256 if machine_size is None else machine_size,
            seed=seed,
            load=0.85 if load is None else load,
        )
    save(workload, output)
    if lost := [label for label in not_kept(workload, output) if label in workload.labels]:
        click.echo(f"not kept, because the format cannot hold it: {', '.join(lost)}")
    click.echo(f"{counted(len(workload), 'job')} written to {output}")


def _by_classes(
    classes: str, output: Path, seed: int, sizes: tuple[int | None, int | None], **wanted: Any
) -> "Workload":
    """Return random jobs drawn from a description of job classes."""
    from pipistrelle.models.workloads.class_jobs import generate_jobs
    from pipistrelle.models.workloads.classes import load_classes

    if sizes != (None, None):
        raise click.UsageError(
            "--classes sets the number of jobs and the machine's size: omit --jobs and --machine-size."
        )
    refuse_overwriting([classes], [output])
    found = load_classes(classes)
    workload = generate_jobs(found, seed, **wanted)
    if (asked := wanted["load"] or found.offered_load) >= 1:
        click.echo(f"offered load {asked:.4f}: more than the machine can process, so the queue grows without end")
    if without := [one.name for one in found.accounts if not one.gpu]:
        click.echo(f"accounts without GPU: {','.join(without)}")
    return workload


def _like(
    like: str, output: Path, seed: int, machine_size: int | None, *, page: Path | None, **wanted: Any
) -> "Workload":
    """Return random jobs drawn from a model.

    ``like`` is the model, or a log to which a model is fitted. ``page`` is a file for the page that compares the jobs
    with the log; None: not written.
    """
    from pipistrelle.models.likeness.drawing import generate_like
    from pipistrelle.models.likeness.model import is_model
    from pipistrelle.traces.describe import offered_load

    refuse_overwriting([like], [output, page])
    if is_model(like) and (page is not None or machine_size is not None):
        option, hint = ("--page", "; 'workload compare' takes any two workloads") if page else ("--machine-size", "")
        raise click.UsageError(
            f"{option} needs a log in --like, because a model has no jobs and sets the machine size itself{hint}."
        )
    model, log = _model(like, machine_size)
    workload = generate_like(model, seed, **wanted)
    if page is not None and log is not None:
        write_page(page, log, workload)
        click.echo(f"log and jobs side by side in {page}")
    load = offered_load(workload, model.machine_size)
    click.echo(f"like {model.name}: offered load {load:.3f}, {(workload.size == 1).mean():.1%} of the jobs of one unit")
    return workload


def _model(name: str, machine_size: int | None) -> "tuple[WorkloadModel, Workload | None]":
    """Return a model, and the log to which it was fitted.

    The log is None if ``name`` is a model.
    """
    from pipistrelle.models.likeness.fitting import fit
    from pipistrelle.models.likeness.model import is_model, load_model
    from pipistrelle.runs.inputs.named import load_workload

    if is_model(name):
        return load_model(name), None
    log = load_workload(name, sort=True)
    return fit(log, machine_size), log


@click.command("model", cls=Command)
@click.argument("source", metavar="LOG", shell_complete=completed("model", "workload", or_file=True))
@click.option(
    "--machine-size",
    type=click.IntRange(min=1),
    show_default="as in the log",
    help="Size of the machine in units (nodes or processors).",
)
@click.option(
    "--jobs", type=click.IntRange(min=1), show_default="as in the log", help="Number of jobs that the model draws."
)
@click.option(
    "--duration",
    metavar="TIME",
    show_default="as in the log",
    help="Time span of the jobs that the model draws, such as '1y'.",
)
@click.option(
    "--load",
    type=PositiveNumber(),
    show_default="as in the log",
    help="Offered load of the drawn jobs: requested node time / available node time, such as 0.9.",
)
@_serial_option("Share of jobs that use one node or processor, such as 47.5%.", "as in the log")
@output_option("TOML file to write.")
def model_command(source: str, machine_size: int | None, output: Path, serial: float | None, **wanted: Any) -> None:
    """Fit a statistical model to a log, and write it as TOML.

    LOG is a bundled name or a file. 'workload generate --like' draws jobs from the model.
    """
    from pipistrelle.models.likeness.fitting import planned, with_serial
    from pipistrelle.models.likeness.model import model_text
    from pipistrelle.traces.files import write_trace

    if output.suffix != ".toml":
        raise click.UsageError(f"a model is written as TOML: name a .toml file, not '{output.name}'.")
    refuse_overwriting([source], [output])
    model, _ = _model(source, machine_size)
    if serial is not None:
        model = with_serial(model, serial)
    model = planned(model, **wanted)
    write_trace(output, [model_text(model).encode()])
    told = f"{model.jobs:,} jobs in {model.duration}, offered load {model.load:.3f}, {model.serial:.1%} of one unit"
    click.echo(f"model of {told} written to {output}")

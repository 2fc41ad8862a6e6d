"""Commands of ``pipistrelle workload`` that change a workload."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import click
from click.core import ParameterSource

from pipistrelle.cli.options.fields import options_of
from pipistrelle.cli.options.files import output_option, reading_but_zone, reading_options, strict_option
from pipistrelle.cli.options.names import completed
from pipistrelle.cli.options.sections import Command
from pipistrelle.cli.terminal.guard import refuse_overwriting
from pipistrelle.cli.workload.group import LATER
from pipistrelle.protocol.base.errors import did_you_mean, printable
from pipistrelle.runs.inputs.named import clock_zone, load_workload, reading_for
from pipistrelle.runs.inputs.step_texts import THEN, split_steps
from pipistrelle.runs.inputs.steps import AnyStep, Filter, Merge
from pipistrelle.traces.clean import faults_text
from pipistrelle.traces.errors import counted
from pipistrelle.traces.load import not_kept, save
from pipistrelle.traces.workload import Workload

#: {name: command} of the steps
STEPS: Final[dict[str, "StepCommand"]] = {}
#: parameters for reading the workload
_READING: Final = ("sort", "units", "timezone", "columns", "strict")
_ALIGNED: Final = {"date": "equal dates", "zero": "their times 0", "first": "their first jobs"}


class StepCommand(Command):
    """A command that changes a workload in one way.

    Its options are the fields of the class that describes the change, such as `Filter`.
    """

    def __init__(self, form: type[AnyStep], text: str, texts: Mapping[str, str], **names: str) -> None:
        name = form.__name__.lower()
        several = form is Merge
        sources = click.Argument(
            ["sources"],
            metavar="IN..." if several else "IN",
            nargs=-1 if several else 1,
            required=False,
            shell_complete=completed("workload", or_file=True),
        )
        super().__init__(name, params=[sources, *options_of(form, texts, names=names)], help=text)
        (reading_but_zone if form is Filter else reading_options)(self)
        strict_option(self)
        output_option("File to write: .swf, .json, .sacct, .maui; .gz or .xz compresses.", required=False)(self)
        self._form = form
        STEPS[name] = self

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the usage line, which shows that further steps may follow."""
        formatter.write_usage(ctx.command_path, f"{' '.join(self.collect_usage_pieces(ctx))} [{THEN} STEP...]")

    def step(self, ctx: click.Context, others: Sequence[str]) -> AnyStep:
        """Return the change to the workload that the options describe."""
        own = self._form.__struct_fields__
        options: dict[str, Any] = {name: value for name, value in ctx.params.items() if name in own}
        if self._form is Merge:
            options["others"] = tuple(others)
        if self._form is Filter and self._clock(ctx) is not None and not (options["begin"] or options["end"]):
            options["timezone"] = None  # only for the log's clock
        return self._form(**options)

    def _clock(self, ctx: click.Context) -> str | None:
        """Return the log's time zone from the options; None if no option names it."""
        zone: str | None = ctx.params["timezone"]
        names = _sources(ctx)
        if self._form is not Filter or zone is None:
            return zone
        return clock_zone(names[0], zone, ctx.params["columns"]) if names else None

    def reading_alone(self, ctx: click.Context) -> list[str]:
        """Return the given options that only affect how the file is read.

        An example is ``--units``.
        """
        given = [name for name in _READING if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE]
        return [f"--{name}" for name in given if name not in self._form.__struct_fields__]

    def read(self, ctx: click.Context) -> Workload:
        """Read and return the workload to which the first step applies."""
        names = _sources(ctx)
        reading = {name: ctx.params[name] for name in _READING} | {"timezone": self._clock(ctx)}
        return load_workload(names[0], **reading_for(names[0], names, reading))

    def invoke(self, ctx: click.Context) -> None:
        """Read the workload, apply the steps and write it."""
        contexts = [ctx, *(_later(ctx, words) for words in ctx.meta.get(LATER, ()))]
        for context in contexts[1:]:
            command = STEPS[str(context.info_name)]
            if command.reading_alone(context) or (context.params["sources"] and context.info_name != "merge"):
                context.fail(f"a step after '{THEN}' changes the previous step's workload: omit IN and its options.")
        outputs = [context.params["output"] for context in contexts if context.params["output"] is not None]
        if not ctx.params["sources"]:
            ctx.fail("Missing argument 'IN'.")
        if len(outputs) != 1:
            ctx.fail("Missing option '-o' / '--output'." if not outputs else "two outputs are given: keep one -o.")
        refuse_overwriting([name for context in contexts for name in _sources(context)], outputs)
        others = _sources(ctx)[1:]
        workload = self.read(ctx)
        for reason, count in workload.left_out.items():
            click.echo(f"{counted(count, 'job')} left out: {reason}")
        if (said := faults_text(workload)) is not None:
            click.echo(said)
        words = []
        for context in contexts:
            before = len(workload)
            command = STEPS[str(context.info_name)]
            step = command.step(context, others if context is ctx else _sources(context))
            workload = _carry_out(workload, step, _sources(context))
            words.append(step.words)
            if len(workload) != before:
                click.echo(f"{context.info_name}: {counted(before, 'job')} become {len(workload):,}")
        save(_noted(workload, f" {THEN} ".join(words)), outputs[0])
        if lost := not_kept(workload, outputs[0]):
            click.echo(f"not kept, because the format cannot hold it: {', '.join(lost)}")
        click.echo(f"{counted(len(workload), 'job')} written to {outputs[0]}")


def parse_transform(texts: Sequence[str], parent: click.Context) -> tuple[AnyStep, ...]:
    """Parse changes of a workload such as ``scale --load 0.9``.

    One text may contain several changes, separated by ``then``.

    Raises:
        click.UsageError: if a step is not valid.
    """
    from pipistrelle.runs.description.policy import split_words

    # errors refer to the help of the command
    group = click.Context(click.Group("workload"), parent.find_root(), "workload")
    found = []
    for text in texts:
        for words in split_steps(list(split_words(text, "--transform"))):
            context = _context(group, words)
            sources = _sources(context)
            if context.params["output"] is not None:
                context.fail("a step of a run writes no file: omit -o.")
            if sources and context.info_name != "merge":
                context.fail(f"--transform changes the run's workload: omit '{sources[0]}'.")
            command = STEPS[str(context.info_name)]
            if idle := command.reading_alone(context):
                context.fail(f"{idle[0]} is an option of the run, not of a step.")
            found.append(command.step(context, sources))
    return tuple(found)


def _later(ctx: click.Context, words: list[str]) -> click.Context:
    """Parse the words of a later step; return its click context."""
    assert ctx.parent is not None
    if not words:
        ctx.fail(f"a step is missing before or after '{THEN}'.")
    return _context(ctx.parent, words, ctx)


def _context(parent: click.Context, words: list[str], blamed: click.Context | None = None) -> click.Context:
    name, *options = words or [""]
    command = STEPS.get(name)
    if command is None:
        (blamed or parent).fail(f"there is no step '{name}'. {did_you_mean(name, list(STEPS))}")
    return command.make_context(name, options, parent=parent)


def _sources(ctx: click.Context) -> list[str]:
    named = ctx.params["sources"]
    if named is None:
        return []
    return [named] if isinstance(named, str) else list(named)


def _carry_out(workload: Workload, step: AnyStep, names: Sequence[str]) -> Workload:
    """Return the workload after one change.

    For a merge, ``names`` are the workloads to merge with it.
    """
    if not isinstance(step, Merge):
        return step.apply(workload)
    everything = [workload, *step.load_others(names)]
    click.echo(f"merge: {_ALIGNED[step.alignment(everything)]} are at the same time")
    return step.join(everything)


def _noted(workload: Workload, words: str) -> Workload:
    """Return the workload with a line about the changes in its header."""
    notes = [workload.header["Note"]] if "Note" in workload.header else []
    note = "\n".join([*notes, printable(f"changed by pipistrelle: {words}")])
    return replace(workload, header={**workload.header, "Note": note})

"""Steps of ``pipistrelle workload``: commands that make a workload of a workload, one after another."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from pipistrelle.cli.guard import FilledPath, refuse_overwriting
from pipistrelle.protocol.base.errors import did_you_mean, printable
from pipistrelle.studies.inputs.named import load_workload
from pipistrelle.traces.errors import counted
from pipistrelle.traces.load import not_kept, save
from pipistrelle.traces.workload import Workload

#: the word between two steps
THEN: Final = "then"
_LATER: Final = "pipistrelle.workload.later"
#: {name: command} that may be a step
STEPS: Final[dict[str, "Step"]] = {}
#: parameters that say what is read and written, not what is done
_PLACES: Final = ("sources", "output", "sort")

_C = TypeVar("_C", bound=Callable[..., Any])


class StepGroup(click.Group):
    """A group whose commands may be followed by others of its kind, after the word `THEN`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the later steps for `Step.invoke`."""
        first, *later = _split(args)
        if later and first and first[0] not in STEPS:
            ctx.fail(f"'{THEN}' follows only {', '.join(STEPS)}, not '{first[0]}'.")
        ctx.meta[_LATER] = later
        return super().parse_args(ctx, first)


class Step(click.Command):
    """A command that makes a workload of a workload: its function takes one, and the options, and returns one."""

    def __init__(self, name: str, **settings: Any) -> None:
        super().__init__(name, **settings)
        STEPS[name] = self

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Say that steps may follow."""
        formatter.write_usage(ctx.command_path, f"{' '.join(self.collect_usage_pieces(ctx))} [{THEN} STEP...]")

    def invoke(self, ctx: click.Context) -> None:
        """Read, carry out the steps, write."""
        contexts = [ctx, *(_later(ctx, words) for words in ctx.meta[_LATER])]
        for context in contexts[1:]:
            if context.params["sort"] or (context.params["sources"] and context.info_name != "merge"):
                context.fail(f"a step after '{THEN}' takes no other workload than the one before it made.")
        outputs = [context.params["output"] for context in contexts if context.params["output"] is not None]
        if not ctx.params["sources"]:
            ctx.fail("Missing argument 'IN'.")
        if len(outputs) != 1:
            ctx.fail("Missing option '-o' / '--output'." if not outputs else "the output is named twice.")
        refuse_overwriting([name for context in contexts for name in _sources(context)], outputs)
        first, *others = _sources(ctx)
        workload = load_workload(first, sort=ctx.params["sort"])
        words = []
        for context in contexts:
            before = len(workload)
            workload = _carry_out(workload, context, others if context is ctx else _sources(context))
            words.append(_words(context))
            if len(workload) != before:
                click.echo(f"{context.info_name}: {counted(before, 'job')} become {len(workload):,}")
        save(_noted(workload, f" {THEN} ".join(words)), outputs[0])
        if lost := not_kept(workload, outputs[0]):
            click.echo(f"not kept, as the format has no place for it: {', '.join(lost)}")
        click.echo(f"{counted(len(workload), 'job')} written to {outputs[0]}")


def _split(words: list[str]) -> list[list[str]]:
    steps: list[list[str]] = [[]]
    for word in words:
        if word == THEN:
            steps.append([])
        else:
            steps[-1].append(word)
    return steps


def _later(ctx: click.Context, words: list[str]) -> click.Context:
    """Return the context of a later step, its words parsed."""
    if not words:
        ctx.fail(f"a step is missing beside '{THEN}'.")
    name, *options = words
    command = STEPS.get(name)
    if command is None:
        ctx.fail(f"there is no step '{name}'. {did_you_mean(name, list(STEPS))}")
    return command.make_context(name, options, parent=ctx.parent)


def _sources(ctx: click.Context) -> list[str]:
    named = ctx.params["sources"]
    if named is None:
        return []
    return [named] if isinstance(named, str) else list(named)


def _carry_out(workload: Workload, ctx: click.Context, others: Sequence[str]) -> Workload:
    options = {name: value for name, value in ctx.params.items() if name not in _PLACES}
    if ctx.info_name == "merge":
        options["others"] = [load_workload(name, sort=ctx.params["sort"]) for name in others]
    assert ctx.command.callback is not None
    with ctx:
        result: Workload = ctx.command.callback(workload, **options)
    return result


def _words(ctx: click.Context) -> str:
    """Return a step as it could have been typed, without the files."""
    words = [str(ctx.info_name)]
    for option in ctx.command.params:
        if not isinstance(option, click.Option) or option.name in _PLACES:
            continue
        value = ctx.params[str(option.name)]
        if value == option.default or value is None or value == () or value is False:
            continue
        name = next(one for one in option.opts if one.startswith("--"))
        words += [name] if value is True else [f"{name} {one}" for one in (value if option.multiple else (value,))]
    return " ".join(words)


def _noted(workload: Workload, words: str) -> Workload:
    """Return the workload with a line in its header that says what was done."""
    notes = [workload.header["Note"]] if "Note" in workload.header else []
    note = "\n".join([*notes, printable(f"changed by pipistrelle: {words}")])
    return replace(workload, header={**workload.header, "Note": note})


def places(function: _C) -> _C:
    """Add what every step has: the workload that it reads, and the file that the last one writes."""
    function = click.option(
        "-o",
        "--output",
        type=FilledPath(path_type=Path, dir_okay=False),
        help="File to write: .swf, .json, .sacct or .maui, also with .gz or .xz.",
    )(function)
    return click.option(
        "--sort", is_flag=True, help="Accept an SWF log whose submit times are not ascending, and sort it."
    )(function)


def one_source(function: _C) -> _C:
    """Add what a step of one workload has: its name besides `places`."""
    return click.argument("sources", metavar="IN", required=False)(places(function))

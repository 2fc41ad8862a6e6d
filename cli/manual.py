"""``pipistrelle help``: documentation pages, and the man page of both programs."""

from collections.abc import Iterator

import click
from click.shell_completion import CompletionItem

from pipistrelle.cli.options.names import PAGE_PARTS, pages
from pipistrelle.cli.options.sections import Command, sections
from pipistrelle.cli.terminal.console import print_facts
from pipistrelle.protocol.base.errors import did_you_mean


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the completions of TOPIC.

    They are pages and commands, or the commands of a group that is already typed.
    """
    context = ctx.find_root()
    before = ctx.params.get("topic") or ()
    for word in before:
        inner = context.command.get_command(context, word) if isinstance(context.command, click.Group) else None
        if inner is None:
            return []
        context = click.Context(inner, context, word)
    known = [] if before else list(pages())
    known += context.command.list_commands(context) if isinstance(context.command, click.Group) else []
    return [CompletionItem(name) for name in dict.fromkeys(known) if name.startswith(incomplete)]


@click.command(cls=Command)
@click.argument("topic", nargs=-1, shell_complete=_complete)
@click.option("--man", is_flag=True, help="Print the help of all commands as one man page (to read it: '| man -l -').")
@click.pass_context
def command(ctx: click.Context, topic: tuple[str, ...], man: bool) -> None:
    """Print a documentation page or the help of a command.

    Without TOPIC, list the pages.

    \b
    pipistrelle help maui
    pipistrelle help workload scale
    """
    root = ctx.find_root()
    if man:
        if topic:
            raise click.UsageError("--man has all commands: omit TOPIC.")
        click.echo(man_page(root), nl=False)
        return
    if not topic:
        click.echo(
            "Print a page with 'pipistrelle help NAME', and the options of a command with 'pipistrelle help COMMAND'.\n"
        )
        by_part: dict[str, list[tuple[str, str]]] = {part: [] for part in ("", *PAGE_PARTS.values())}
        for name, path in pages().items():
            title = path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
            by_part[PAGE_PARTS.get(path.parent.name, "")].append((name, title))
        width = max(map(len, pages()))
        for part, facts in by_part.items():
            if part:
                click.echo(f"\n{part}:")
            print_facts([(f"{name:<{width}}", title) for name, title in facts], indent="  " if part else "")
        return
    found = pages().get(" ".join(topic))
    if found is not None:
        click.echo_via_pager(found.read_text(encoding="utf-8"))
        return
    context, asked = root, root.command
    for word in topic:
        inner = asked.get_command(context, word) if isinstance(asked, click.Group) else None
        if inner is None:
            known = [*pages(), *(root.command.list_commands(root) if isinstance(root.command, click.Group) else ())]
            raise click.UsageError(
                f"there is neither a page nor a command '{' '.join(topic)}'. {did_you_mean(word, known)}"
            )
        context, asked = click.Context(inner, context, word), inner
    click.echo(asked.get_help(context))


def man_page(root: click.Context) -> str:
    """Return the man page of both programs, in man(7) markup.

    It has all commands of ``pipistrelle``, and ``pipistrelle-batsim``.
    """
    from pipistrelle.cli.run.batsim import command as batsim  # only the man page needs it

    group = root.command
    assert isinstance(group, click.Group)
    lines = [f'.TH PIPISTRELLE 1 "" "{_escaped(_version())}" "User Commands"', ".SH NAME"]
    lines += [f"pipistrelle \\- {_escaped(group.get_short_help_str(200)).rstrip('.')}", ".SH SYNOPSIS"]
    lines += [".B pipistrelle", "COMMAND [OPTIONS]", ".SH DESCRIPTION", *_text(group)]
    lines += _options(root)
    for context in _inner(root):
        lines += _command(context)
    lines += _command(click.Context(batsim, info_name=batsim.name, **batsim.context_settings))
    return "\n".join(lines) + "\n"


def _command(context: click.Context) -> list[str]:
    """Return the man page's lines about a command.

    For a group, they are also about its commands.
    """
    command = context.command
    pieces = " ".join(command.collect_usage_pieces(context))
    lines = [f".SH {_escaped(context.command_path.upper())}", f".B {_escaped(context.command_path)}", _escaped(pieces)]
    lines += [".PP", *_text(command), *_options(context)]
    for inner in _inner(context):
        lines += _command(inner)
    return lines


def _inner(context: click.Context) -> Iterator[click.Context]:
    """Yield the click context of each command in a group.

    Yield nothing if the command is not a group.
    """
    group = context.command
    if isinstance(group, click.Group):
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            yield click.Context(command, context, name)


def _options(context: click.Context) -> list[str]:
    lines = []
    for title, records in sections(context.command, context).items():
        lines += [f".SS {_escaped(title)}"]
        for names, text in records:
            lines += [".TP", f".B {_escaped(names)}", _escaped(text)]
    return lines


def _text(command: click.Command) -> list[str]:
    """Return the paragraphs of a command's help; examples keep their lines."""
    lines: list[str] = []
    for paragraph in (command.help or "").split("\n\n"):
        words = paragraph.strip()
        if words.startswith("\b"):
            lines += [".PP", ".nf", *map(_escaped, words.removeprefix("\b").strip("\n").split("\n")), ".fi"]
        else:
            lines += [".PP", _escaped(" ".join(words.split()))]
    return lines


def _escaped(text: str) -> str:
    """Return text with man markup escaped."""
    plain = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{plain}" if plain.startswith((".", "'")) else plain


def _version() -> str:
    from pipistrelle.protocol.fields import package_version

    return f"pipistrelle {package_version()}"

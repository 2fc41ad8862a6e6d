"""docs/reference/maui.md: the parameters and attributes, as the code has them."""

import re
from pathlib import Path

import pytest

from pipistrelle.schedulers.maui.config.attributes import CREDENTIAL_ATTRIBUTES, STANDING_ATTRIBUTES
from pipistrelle.schedulers.maui.config.parameters import ALIASES, PARAMETERS, Kind, Support, Value
from pipistrelle.schedulers.maui.config.settings import KINDS

PAGE = "docs/reference/maui.md"


def names(text: str) -> list[str]:
    """Return the texts between backticks, with braces expanded as in a shell: `A{B,C}` is AB and AC."""
    return [name for found in re.findall(r"`([^`]+)`", text) for name in expand(found)]


def expand(text: str) -> list[str]:
    """Return a text once for each choice of the words in its braces."""
    before, brace, rest = text.partition("{")
    if not brace:
        return [text]
    words, _, after = rest.partition("}")
    return [name for word in words.split(",") for name in expand(before + word + after)]


def shown(value: Value) -> str:
    """Return a default as the page shows it."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, tuple):
        return ",".join(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def supported(support: Support) -> list[str]:
    """Return the names of the parameters with a level of support, in their order."""
    return [parameter.name for parameter in PARAMETERS.values() if parameter.support is support]


def test_every_supported_parameter_is_on_the_page(section, table) -> None:
    """With its default, unit, meaning and choices."""
    text = section(PAGE, "Parameters")
    rows = {name: row for row in table(text) for name in names(row[0])}

    assert list(rows) == supported(Support.YES)
    for name, (together, default, unit, meaning) in rows.items():
        parameter = PARAMETERS[name]
        means = parameter.meaning
        if len(names(together)) > 1:  # their meanings differ in one word, which the page leaves out
            means = means.replace(f" {name.removesuffix('CAP')} ", " ")
            if before := meaning.partition("...")[0]:
                means = re.sub(rf"^({re.escape(before)})\w+", r"\1...", means)
        assert (default, unit) == (shown(parameter.default), parameter.unit), name
        assert meaning.replace("`", "").startswith(means), name
        assert parameter.kind is not Kind.CHOICE or tuple(names(meaning)) == parameter.choices, name
    aliases = re.findall(r"`(\w+)` for\s+`(\w+)`", text)
    assert dict(aliases) == ALIASES


def test_what_is_not_supported_is_on_the_page(section, table) -> None:
    """Each with its reason, or in the list of what Maui itself has replaced."""
    text = section(PAGE, "Not supported")
    rows = {name: row[1] for row in table(text) for name in names(row[0])}
    superseded = names(text.partition("Superseded")[2])

    idle = {name: row[1] for row in table(section(PAGE, "Without effect")) for name in names(row[0])}

    assert sorted([*rows, *superseded]) == sorted(supported(Support.NO))
    assert sorted(idle) == sorted(supported(Support.IDLE))
    assert all(why == PARAMETERS[name].meaning for name, why in (rows | idle).items())
    assert all(PARAMETERS[name].meaning.startswith("superseded by") for name in superseded)


def test_ignored_parameters_are_on_the_page(section) -> None:
    """All parameters that are ignored without a warning are listed."""
    assert names(section(PAGE, "Of the daemon")) == supported(Support.DAEMON)


def test_every_attribute_is_on_the_page(section, table) -> None:
    """Supported attributes are in their tables, the others have a reason."""
    credentials = {name for row in table(section(PAGE, "Attributes of credentials")) for name in names(row[0])}
    standing = {name for row in table(section(PAGE, "Standing reservations")) for name in names(row[0])}
    rows = table(section(PAGE, "Attributes that are not supported"))
    without = {(name, row[1]) for row in rows for name in names(row[0])}
    per_credential = {name for name in CREDENTIAL_ATTRIBUTES if name.partition("PER")[2] in KINDS}

    assert credentials | {name for name, of in without if of == "credentials"} | per_credential == CREDENTIAL_ATTRIBUTES
    assert standing | {name for name, of in without if of == "`SRCFG`"} == STANDING_ATTRIBUTES


def test_differences_are_named_by_known_parameters(section, table) -> None:
    """The first column has names of Maui's parameters."""
    found = [name for row in table(section(PAGE, "Differences")) for name in names(row[0])]

    assert len(found) > 20
    assert set(found) <= PARAMETERS.keys()


def test_the_example_runs(section, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    """It prints the warning of its last line, and all jobs complete."""
    monkeypatch.chdir(tmp_path)
    code = section(PAGE, "Use").partition("```python\n")[2].partition("```")[0]
    exec(compile(code, "docs/reference/maui.md", "exec"), {})  # noqa: S102 - the page's own example
    printed = capsys.readouterr().out

    assert printed.startswith("maui.cfg:6: parameter RMPOLLINTERVAL is not supported")
    assert printed.endswith(" jobs completed\n")

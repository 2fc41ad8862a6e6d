"""Steps that change a workload, as texts.

An example is ``scale --load 0.9 then filter --first 100``.
"""

import shlex
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec.structs import fields

from pipistrelle.protocol.base.errors import InputError, did_you_mean, quoted
from pipistrelle.protocol.base.shapes import misfit
from pipistrelle.runs.inputs.steps import STEPS, AnyStep, Merge

#: word between two steps
THEN: Final = "then"
#: second name of the option ``--walltime``
WALLCLOCK_LIMIT: Final = "wallclock-limit"
_EXAMPLE: Final = "scale --load 0.9"
_EXPECTED: Final = f"a text such as '{_EXAMPLE}'"


def split_steps(words: list[str]) -> list[list[str]]:
    """Split the words of a command line at each ``then``.

    Return the words of each step.
    """
    steps: list[list[str]] = [[]]
    for word in words:
        if word == THEN:
            steps.append([])
        else:
            steps[-1].append(word)
    return steps


def parse_steps(text: str, where: str) -> list[AnyStep]:
    """Return the steps that a text describes, as the option ``--transform`` does.

    Raises:
        InputError: a step or option is unknown, or a value is malformed.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InputError(
            f"the text cannot be split into words ({error})", where=where, expected=_EXPECTED, found=quoted(text)
        ) from None
    return [_step(one, f"{where}: {quoted(text)}") for one in split_steps(words)]


def _step(words: list[str], where: str) -> AnyStep:
    name, *rest = words or [""]
    form = STEPS.get(name)
    if form is None:
        what = f"there is no step {quoted(name)}" if name else "a step is missing"
        raise InputError(what, where=where, expected=_EXPECTED, hint=did_you_mean(name, list(STEPS)))
    kinds = {one.encode_name: one.type for one in fields(form)}
    table: dict[str, Any] = {"step": name}
    for option, value in _options(iter(rest), kinds, name, where):
        if "tuple[" in str(kinds[option]):
            table.setdefault(option, []).append(value)
        else:
            table[option] = value
    try:
        return msgspec.convert(table, form, strict=False)
    except msgspec.ValidationError as error:
        raise misfit(error, table, form, where, InputError, f"An example of a step: '{_EXAMPLE}'.") from None


def _options(words: Iterator[str], kinds: dict[str, Any], step: str, where: str) -> Iterator[tuple[str, Any]]:
    """Yield each option with its value; an option without a value has True."""
    for word in words:
        if not word.startswith("--"):
            if STEPS[step] is not Merge:
                raise InputError(
                    f"step {step} has an unexpected word {quoted(word)}", where=where, expected=_EXPECTED,
                    hint="Options begin with '--'.",
                )  # fmt: skip
            yield "others", word
            continue
        name, sign, value = word[2:].partition("=")
        name = "walltime" if name == WALLCLOCK_LIMIT else name
        if name not in kinds or name == "others":
            known = [f"--{one}" for one in kinds if one != "others"]
            raise InputError(
                f"step {step} has no option {quoted(word)}", where=where, hint=did_you_mean(f"--{name}", known)
            )
        if kinds[name] is bool:
            if sign:
                raise InputError(f"--{name} takes no value", where=where, found=quoted(value))
            yield name, True
            continue
        found = value if sign else next(words, None)
        if found is None:
            raise InputError(f"--{name} needs a value", where=where, expected=_EXPECTED)
        yield name, found

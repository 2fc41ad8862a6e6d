"""Split a command line of sbatch into its options.

Source: manual of sbatch, Slurm 22.05. Long options may be abbreviated, and a later option overrides an earlier option.
"""

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from importlib.resources import files
from itertools import pairwise
from typing import Final, NamedTuple

from pipistrelle.protocol.base.errors import did_you_mean, quoted
from pipistrelle.traces.errors import TraceError


class OptionRole(Enum):
    """What a reader does with an option of sbatch."""

    READ = "read"
    PASSED = "passed"
    IDLE = "idle"
    WARNED = "warned"


class SbatchOption(NamedTuple):
    """An option of sbatch.

    ``value`` is "VALUE", "[VALUE]" if the value is optional, or "" if the option has none.
    """

    name: str
    role: OptionRole
    short: str = ""
    value: str = ""


_ENTRY: Final = re.compile(r"([a-z-]+)(?: -(\w))?(?: (\[VALUE\]|VALUE))?")


def _options() -> dict[str, SbatchOption]:
    text = files("pipistrelle.traces.slurm").joinpath("library/sbatch.toml").read_text(encoding="utf-8")
    tables = tomllib.loads(text)
    found = {}
    for role in OptionRole:
        for entry in tables[role.value]:
            match = _ENTRY.fullmatch(entry)
            assert match is not None, entry
            found[match[1]] = SbatchOption(match[1], role, match[2] or "", match[3] or "")
    return found


#: {long name: option}
OPTIONS_OF_SBATCH: Final = _options()
_SHORT: Final = {option.short: option for option in OPTIONS_OF_SBATCH.values() if option.short}
#: {other long name: long name}
_ALIASES: Final = {"tasks-per-node": "ntasks-per-node", "workdir": "chdir"}
#: options of the University at Buffalo's simulator, which have one dash and a long name
_SIMULATED: Final = ("-sim-walltime", "-jid", "-sleep", "-cancel-in")


@dataclass(slots=True)
class SbatchCall:
    """The options of one call of sbatch.

    Attributes:
        values: {long name: value}; the value is "" for options that have none.
        simulated: {name: value} of options of the simulator, such as ``sim-walltime``.
        unknown: options that sbatch does not have.
        names: each value of ``job-name``, in order.
        script: the first word that is no option, or "".
    """

    values: dict[str, str] = field(default_factory=dict)
    simulated: dict[str, str] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    script: str = ""

    def take(self, option: SbatchOption, value: str) -> None:
        """Add an option; a repeated option gets the new value."""
        name = _ALIASES.get(option.name, option.name)
        self.values.pop(name, None)
        self.values[name] = value
        if name == "job-name":
            self.names.append(value)


def parse_sbatch(words: Sequence[str], where: str) -> SbatchCall:
    """Return the options of a command line, which ends at the name of the script.

    Raises:
        TraceError: an option lacks its value or has a value that it does not accept, or an abbreviation is ambiguous.
    """
    found = SbatchCall()
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, mark, value = word.partition("=")
        if name in _SIMULATED:
            found.simulated[name[1:]] = value if mark else _value(rest, word, where)
        elif word == "--":
            found.script = rest[0] if rest else ""
            break
        elif word.startswith("--"):
            _long(found, name[2:], value if mark else None, rest, where)
        elif word.startswith("-") and len(word) > 1:
            _short(found, word[1:], rest, where)
        else:
            found.script = word
            break
    # what follows the script are its own arguments, but some files give the simulator's options there
    for word, after in pairwise(rest):
        if word in _SIMULATED and word[1:] not in found.simulated:
            found.simulated[word[1:]] = after
    return found


def _long(found: SbatchCall, name: str, value: str | None, rest: list[str], where: str) -> None:
    option = OPTIONS_OF_SBATCH.get(name) or _abbreviated(name, where)
    if option is None:
        found.unknown.append(f"--{name}")
        return
    if option.value == "VALUE" and value is None:
        value = _value(rest, f"--{name}", where)
    if not option.value and value is not None:
        raise TraceError(f"--{name} has no value", where=where, expected=f"--{name}", found=quoted(f"--{name}={value}"))
    found.take(option, value or "")


def _abbreviated(name: str, where: str) -> SbatchOption | None:
    close = [option for key, option in OPTIONS_OF_SBATCH.items() if key.startswith(name)] if name else []
    if len(close) > 1:
        names = ", ".join(f"--{option.name}" for option in close[:4])
        raise TraceError(f"--{name} is ambiguous", where=where, expected=f"one of {names}", found=quoted(f"--{name}"))
    return close[0] if close else None


def _short(found: SbatchCall, letters: str, rest: list[str], where: str) -> None:
    """Parse short options such as ``-n12``, ``-n 12`` or ``-HQ`` into ``found``.

    ``letters`` is the word without its dash. If an option's value is the next word, it is taken from ``rest``.
    """
    while letters:
        option, letters = _SHORT.get(letters[0]), letters[1:] if letters[0] in _SHORT else letters
        if option is None:
            found.unknown.append(f"-{letters}")
            return
        if option.value == "VALUE":
            found.take(option, letters or _value(rest, f"-{option.short}", where))
            return
        found.take(option, "")


def _value(rest: list[str], name: str, where: str) -> str:
    if not rest:
        raise TraceError(f"{name} lacks its value", where=where, expected=f"{name} VALUE", found="the end of the line")
    return rest.pop(0)


def unknown_hint(name: str) -> str:
    """Return a suggestion for an unknown option."""
    return did_you_mean(name.lstrip("-"), list(OPTIONS_OF_SBATCH))

"""The checked settings of a slurm.conf, and how Pipistrelle treats each key."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.slurm.keys import HEADS, KEYS, ConfKey, KeySupport
from pipistrelle.platforms.slurm.lines import WORD, ConfLine, ConfPair, Fetch, read_lines
from pipistrelle.platforms.slurm.values import SlurmValueError, Value, read_value
from pipistrelle.protocol.base.errors import did_you_mean, legible, shown

_DEFAULT: Final = "default"
#: values with which a key that is not supported has no effect
_NOTHING: Final = ("", "0", "-1", "no", "none", "(null)", "false")
#: unknown keys that get a suggestion, which takes long to find
_MOST_HINTS: Final = 50


class SlurmConfigError(PlatformError):
    """A file of Slurm's configuration cannot be used."""


class KeyFinding(NamedTuple):
    """How Pipistrelle treats one key of a file.

    It has the key, its file and line, whether it is supported, and why.

    Attributes:
        support: None for a key that Slurm 22.05 does not have.
    """

    where: str
    key: str
    support: KeySupport | None
    why: str

    def __str__(self) -> str:
        """Return the finding as the text of a warning."""
        return f"{self.where}: {self.key}: {self.why}"


class ConfSetting(NamedTuple):
    """The value of a key.

    It is given as text and as a parsed value, with the file and line where it is set.
    """

    text: str
    value: Value
    where: str


@dataclass(frozen=True)
class ConfEntry:
    """A line that describes nodes, a partition or another object.

    It includes the defaults of earlier lines.

    Attributes:
        name: the value of the line's first key, such as ``n[01-16]``.
        settings: {key in lower case: setting}.
    """

    name: str
    where: str
    settings: Mapping[str, ConfSetting]

    def get(self, *keys: str) -> ConfSetting | None:
        """Return the setting of the first of ``keys`` that the entry sets; None if it sets none of them."""
        return next((self.settings[key.lower()] for key in keys if key.lower() in self.settings), None)

    def value(self, key: str, default: Value = None) -> Value:
        """Return the parsed value of a key, or the default."""
        found = self.settings.get(key.lower())
        return default if found is None else found.value


@dataclass
class SlurmConf:
    """The settings of a slurm.conf.

    Attributes:
        name: the file's name in messages.
        parameters: {key in lower case: setting}; of a repeated key the last one counts.
        entries: {section: its entries, in the order of the file}, for nodes, partitions, node sets and down nodes.
        findings: how Pipistrelle treats each key, in the order of the file.
    """

    name: str
    parameters: dict[str, ConfSetting] = field(default_factory=dict)
    entries: dict[str, list[ConfEntry]] = field(default_factory=dict)
    findings: list[KeyFinding] = field(default_factory=list)

    def value(self, key: str, default: Value = None) -> Value:
        """Return the parsed value of a parameter, or the default."""
        found = self.parameters.get(key.lower())
        return default if found is None else found.value

    def text(self, key: str, default: str = "") -> str:
        """Return the value of a parameter as text, or the default."""
        found = self.parameters.get(key.lower())
        return default if found is None else found.text

    def where(self, key: str) -> str:
        """Return the file and line of a parameter.

        Return only the file if the parameter is not set.
        """
        found = self.parameters.get(key.lower())
        return self.name if found is None else found.where

    def doubtful(self) -> Iterator[KeyFinding]:
        """Yield the findings about keys that Slurm would honour but Pipistrelle does not."""
        return (one for one in self.findings if one.support in (KeySupport.WARNED, None))


def is_slurm_conf(text: str) -> bool:
    """Return whether a text begins as a slurm.conf does.

    It must begin with a key that exists only in slurm.conf.
    """
    for raw in text.splitlines():
        line = raw.partition("#")[0].strip()
        if not line:
            continue
        word, mark, _ = line.partition("=")
        key = word.strip().lower()
        if not mark:
            return line.lower().startswith("include ")
        if key in ("name", "feature", "state", "port", "reason", "default", "qos"):
            return False
        return key in KEYS["parameters"] or key in HEADS
    return False


def read_slurm_conf(text: str, name: str, fetch: Fetch | None = None) -> SlurmConf:
    """Return the settings of a slurm.conf and of the files that it includes.

    Args:
        name: the file's name in messages.
        fetch: reads included files; None: they are refused.

    Raises:
        SlurmConfigError: with file and line, if a line or a value is malformed, or a setting is refused.
    """
    conf = SlurmConf(name)
    defaults: dict[str, dict[str, ConfSetting]] = {}
    partitions: dict[str, str] = {}
    hints = _Hints()
    for line in read_lines(text, name, fetch, SlurmConfigError):
        section = HEADS.get(line.pairs[0].key.lower())
        if section is None:
            for pair in line.pairs:
                setting = _setting("parameters", pair, line, conf, hints)
                if setting is not None:
                    old = conf.parameters.get(pair.key.lower())
                    if old is not None:
                        why = f"the value replaces the one of {old.where}"
                        conf.findings.append(KeyFinding(line.where, legible(pair.key, WORD), KeySupport.WARNED, why))
                    conf.parameters[pair.key.lower()] = setting
            continue
        head, *rest = line.pairs
        found = dict(defaults.get(section, {}))
        for pair in (head, *rest):
            setting = _setting(section, pair, line, conf, hints)
            if setting is not None:
                found[pair.key.lower()] = setting
        if head.value.lower() == _DEFAULT:
            found.pop(head.key.lower(), None)
            defaults[section] = found
        else:
            same = partitions.setdefault(head.value, line.where) if section == "partitions" else line.where
            if same != line.where:
                raise SlurmConfigError(
                    f"the partition {shown(head.value)} is described twice", where=line.where, found=same
                )
            conf.entries.setdefault(section, []).append(ConfEntry(head.value, line.where, found))
    if not conf.parameters and not conf.entries:
        raise SlurmConfigError("the file has no settings", where=name, expected="a slurm.conf, with KEY=VALUE lines")
    return conf


def honoured_values(section: str, line: ConfLine, findings: list[KeyFinding]) -> dict[str, str]:
    """Return {key: text} of those keys of a line that Pipistrelle honours.

    Args:
        findings: a list to which the finding about each key is added.
    """
    values: dict[str, str] = {}
    known = KEYS[section]
    for pair in line.pairs:
        key = known.get(pair.key.lower())
        if key is None:
            hint = did_you_mean(pair.key, [one.name for one in known.values()])
            why = f"unknown key in {section}.conf. {hint}".rstrip()
            findings.append(KeyFinding(line.where, legible(pair.key, WORD), None, why))
            continue
        findings.append(KeyFinding(line.where, key.name, key.support, key.meaning))
        if key.support is KeySupport.HONOURED:
            values[key.name] = pair.value
    return values


class _Hints:
    """Suggestions for unknown keys; only the first few unknown keys get one."""

    def __init__(self) -> None:
        self._count = 0

    def of(self, key: str, known: list[str]) -> str:
        self._count += 1
        hint = did_you_mean(key, known) if self._count <= _MOST_HINTS else ""
        return hint if hint.startswith("Did") else ""


def _setting(section: str, pair: ConfPair, line: ConfLine, conf: SlurmConf, hints: _Hints) -> ConfSetting | None:
    """Return the setting of a key, or None if Pipistrelle ignores the key.

    How the key is treated is added to the findings.
    """
    key = KEYS[section].get(pair.key.lower())
    named = legible(pair.key, WORD)
    if key is None:
        hint = hints.of(pair.key, [one.name for one in KEYS[section].values()])
        why = (
            f"unknown key in a line of {section}. {hint}".rstrip()
            if section != "parameters"
            else f"unknown key. {hint}"
        )
        conf.findings.append(KeyFinding(line.where, named, None, why.rstrip()))
        return None
    if key.support is KeySupport.REFUSED:
        raise SlurmConfigError(f"{key.name} is not supported", where=line.where, hint=_sentence(key))
    idle = key.support is KeySupport.WARNED and pair.value.lower() in _NOTHING
    conf.findings.append(KeyFinding(line.where, key.name, KeySupport.IDLE if idle else key.support, key.meaning))
    if key.support is not KeySupport.HONOURED:
        return None
    try:
        return ConfSetting(pair.value, read_value(key.kind, pair.value), line.where)
    except SlurmValueError as error:
        raise SlurmConfigError(
            f"the value of {key.name} is wrong",
            where=line.where,
            expected=error.expected,
            found=f"'{legible(pair.value, WORD)}'",
        ) from None


def _sentence(key: ConfKey) -> str:
    return key.meaning[:1].upper() + key.meaning[1:].rstrip(".") + "."

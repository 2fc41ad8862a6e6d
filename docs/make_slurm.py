"""Update the tables in docs/reference/slurm.md from the code.

The rest of the page is kept. Run it with: python docs/make_slurm.py
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pipistrelle.platforms.slurm.keys import KEYS, ConfKey, KeySupport
from pipistrelle.schedulers.slurm.files.limits import NAMES
from pipistrelle.schedulers.slurm.files.submission import USED_OPTIONS
from pipistrelle.traces.slurm.sbatch import OPTIONS_OF_SBATCH, OptionRole

PAGE = Path(__file__).resolve().parent / "reference" / "slurm.md"
_MARK: Final = "<!-- made by docs/make_slurm.py: {} -->"
_TITLES: Final = {
    "parameters": "Parameters",
    "scheduler": "SchedulerParameters",
    "nodes": "NodeName lines",
    "partitions": "PartitionName lines",
    "nodesets": "NodeSet lines",
    "downnodes": "DownNodes lines",
    "frontends": "FrontendName lines",
    "gres": "gres.conf",
    "topology": "topology.conf",
}
_ROLES: Final = {
    OptionRole.READ: "read: what the job takes, its times and names",
    OptionRole.PASSED: "the scheduler `slurm` decides by it",
    OptionRole.IDLE: "ignored: no effect on when and where the job starts",
    OptionRole.WARNED: "ignored with a warning and a count",
}
#: the heading of the first column in a table of keys with this support
_SUPPORT: Final = {
    KeySupport.IDLE: "ignored, no effect",
    KeySupport.WARNED: "ignored, has an effect",
    KeySupport.REFUSED: "refused",
}


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _section(name: str) -> Iterator[str]:
    keys = list(KEYS[name].values())
    yield f"### {_TITLES[name]}"
    yield ""
    yield "| key | default | meaning |"
    yield "|---|---|---|"
    for key in keys:
        if key.support is KeySupport.HONOURED:
            default = f"`{_cell(key.default)}`" if key.default else "-"
            yield f"| `{key.name}` | {default} | {_cell(key.meaning)} |"
    for support in (KeySupport.IDLE, KeySupport.WARNED, KeySupport.REFUSED):
        by_reason: dict[str, list[ConfKey]] = {}
        for key in keys:
            if key.support is support:
                by_reason.setdefault(key.meaning, []).append(key)
        if by_reason:
            yield ""
            yield f"| {_SUPPORT[support]} | why |"
            yield "|---|---|"
        for reason, some in by_reason.items():
            names = ", ".join(f"`{key.name}`" for key in some)
            yield f"| {names} | {_cell(reason)} |"
    yield ""


def keys_text() -> str:
    """Return the sections of all keys of slurm.conf, gres.conf and topology.conf."""
    return "\n".join(line for name in _TITLES for line in _section(name)).rstrip()


def limits_text() -> str:
    """Return the table of supported options of associations and QOS."""
    lines = ["| setting | association | QOS |", "|---|---|---|"]
    fields = dict.fromkeys(name.field for names in NAMES.values() for name in names.values())
    for field in fields:
        cells = []
        for kind in ("association", "qos"):
            found = [name for name, to in NAMES[kind].items() if to.field == field]
            cells.append(", ".join(f"`{name}`" for name in found) or "-")
        lines.append(f"| {field.replace('_', ' ')} | {cells[0]} | {cells[1]} |")
    return "\n".join(lines)


def _is_used(name: str) -> bool:
    return name in USED_OPTIONS or f"{name}=" in USED_OPTIONS


def _options_row(text: str, names: list[str]) -> str:
    return f"| {text} | {', '.join(f'`--{name}`' for name in names)} |"


def options_text() -> str:
    """Return the table of the options of sbatch, by their effect."""
    lines = ["| what happens | options |", "|---|---|"]
    for role, text in _ROLES.items():
        names = [one.name for one in OPTIONS_OF_SBATCH.values() if one.role is role]
        unread = [name for name in names if role is OptionRole.PASSED and not _is_used(name)]
        lines.append(_options_row(text, [name for name in names if name not in unread]))
        if unread:
            lines.append(_options_row("ignored by the scheduler `slurm`, with a warning that counts the jobs", unread))
    return "\n".join(lines)


def page() -> str:
    """Return the text of the page, with regenerated tables."""
    text = PAGE.read_text(encoding="utf-8")
    for name, made in (("keys", keys_text()), ("limits", limits_text()), ("options", options_text())):
        begin, end = re.escape(_MARK.format(name)), re.escape(_MARK.format("end"))
        text = re.sub(
            f"({begin}\n\n).*?(\n\n{end})", lambda found, made=made: found[1] + made + found[2], text, flags=re.DOTALL
        )
    return text


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

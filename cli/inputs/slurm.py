"""What `pipistrelle validate` says about files of a Slurm cluster."""

import os
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pipistrelle.cli.terminal.console import print_table
from pipistrelle.platforms.description import Platform
from pipistrelle.platforms.slurm.conf import KeyFinding
from pipistrelle.platforms.slurm.gres import read_gres_conf
from pipistrelle.platforms.slurm.keys import KeySupport
from pipistrelle.protocol.base.errors import printable
from pipistrelle.runs.slurm.cluster import load_cluster
from pipistrelle.runs.slurm.files import (
    GRES,
    TOPOLOGY,
    Fetching,
    beginning_text,
    is_slurm_file,
    read_slurm_files,
)
from pipistrelle.schedulers.slurm.files.accounting import is_accounting, read_accounting
from pipistrelle.schedulers.slurm.files.topology import read_topology

_COLUMNS: Final = ("line", "key", "support", "meaning")
_UNKNOWN: Final = "unknown"
_SWITCH: Final = re.compile(r"^[ \t]*switchname[ \t]*=", re.IGNORECASE | re.MULTILINE)
_GRES_LINE: Final = re.compile(r"^[ \t]*(?:autodetect|name)[ \t]*=", re.IGNORECASE | re.MULTILINE)
_LONGEST: Final = 72


class SlurmReport:
    """Facts about a file, and how Pipistrelle treats each of its keys.

    Attributes:
        facts: (heading, text) pairs.
        platform: the machine that a slurm.conf describes; None for other files.
        findings: how Pipistrelle treats each key, in the order of the lines.
    """

    def __init__(
        self, facts: Sequence[tuple[str, str]], findings: Sequence[KeyFinding], platform: Platform | None = None
    ) -> None:
        self.facts = list(facts)
        self.findings = list(findings)
        self.platform = platform
        counts = Counter(_word(one) for one in findings)
        order = [*(support.value for support in KeySupport), _UNKNOWN]
        told = [f"{counts[word]:,} {word}" for word in order if counts[word]]
        self.facts.append(("keys", "; ".join(told) or "none"))

    def print_table(self) -> None:
        """Print a row for each key of each line.

        A row has the file and line, the key, how it is supported, and the reason.
        """
        rows: list[tuple[str, str, str, str]] = []
        order = {name: place for place, name in enumerate(dict.fromkeys(map(_file, self.findings)))}
        seen: set[tuple[str, str]] = set()
        for one in sorted(self.findings, key=lambda one: (order[_file(one)], _line(one))):
            if (one.where, one.key) not in seen:
                seen.add((one.where, one.key))
                why = one.why if len(one.why) <= _LONGEST else f"{one.why[: _LONGEST - 3]}..."
                rows.append((os.path.basename(one.where), one.key, _word(one), why))
        if rows:
            print_table("keys of the files", _COLUMNS, rows, _COLUMNS)


def _file(finding: KeyFinding) -> str:
    return finding.where.rpartition(":")[0]


def _line(finding: KeyFinding) -> int:
    number = finding.where.rpartition(":")[2]
    return int(number) if number.isdecimal() else 0


def _word(finding: KeyFinding) -> str:
    return _UNKNOWN if finding.support is None else finding.support.value


def slurm_report(path: Path) -> SlurmReport | None:
    """Return the report about a file of a Slurm cluster.

    Return None if the file is of another kind.

    Raises:
        PipistrelleError: the file is wrong.
    """
    name = str(path)
    if not os.path.isfile(name) or path.suffix in (".toml", ".json", ".xml", ".swf", ".gz", ".xz"):
        return None
    head = beginning_text(name)
    if path.name == TOPOLOGY or _SWITCH.search(head):
        switches, findings = read_topology(head, printable(name), fetch=Fetching(name, trust=False))
        nodes = {node for switch in switches for node in switch.nodes}
        return SlurmReport([("topology", f"{len(switches):,} switches, {len(nodes):,} nodes")], findings)
    if path.name == GRES or (_GRES_LINE.search(head) and not is_slurm_file(name)):
        lines, findings = read_gres_conf(head, printable(name), Fetching(name, trust=False))
        kinds = ", ".join(dict.fromkeys(":".join(filter(None, (line.name, line.type))) for line in lines))
        return SlurmReport([("generic resources", kinds or "none")], findings)
    if is_slurm_file(name):
        files = read_slurm_files(name)
        cluster = load_cluster(name, strict=False)
        config = cluster.config
        facts = [
            ("cluster", config.cluster_name),
            ("scheduler", f"{config.scheduler_type}, {config.priority.type}, {config.select.type}"),
        ]
        return SlurmReport(facts, cluster.findings, files.platform)
    if is_accounting(head):
        found = read_accounting([(printable(name), head)])
        users = {one.user for one in found.associations if one.user}
        accounts = {one.account for one in found.associations}
        facts = [
            ("accounts", f"{len(accounts):,} accounts, {len(users):,} users, {len(found.associations):,} associations"),
            ("QOS", ", ".join(one.name for one in found.qos) or "none"),
        ]
        return SlurmReport(facts, found.findings)
    return None

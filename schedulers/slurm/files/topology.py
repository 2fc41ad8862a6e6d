"""Read a topology.conf: the tree of switches."""

from collections.abc import Mapping, Sequence

from pipistrelle.platforms.naming.hostlists import NameLists, compressed
from pipistrelle.platforms.slurm.conf import KeyFinding, SlurmConfigError, honoured_values
from pipistrelle.platforms.slurm.keys import KeySupport
from pipistrelle.platforms.slurm.lines import WORD, Fetch, read_lines
from pipistrelle.protocol.base.errors import did_you_mean, legible, shown
from pipistrelle.schedulers.slurm.config.machine import SwitchSettings


def read_topology(
    text: str, name: str, nodes: Mapping[str, int] | None = None, fetch: Fetch | None = None
) -> tuple[tuple[SwitchSettings, ...], list[KeyFinding]]:
    """Return the switches of a topology.conf, and findings on its keys.

    A finding says whether a key is honoured or ignored.

    Args:
        nodes: {name of a node of the machine: its number}; None: names are not checked.

    Raises:
        SlurmConfigError: a line is malformed, a switch is described twice or is its own descendant, or a name is
            unknown.
    """
    found: dict[str, SwitchSettings] = {}
    places: dict[str, str] = {}
    findings: list[KeyFinding] = []
    lists, firsts = NameLists(), list[str]()
    for line in read_lines(text, name, fetch, SlurmConfigError):
        values = honoured_values("topology", line, findings)
        if "SwitchName" not in values:
            if "Nodes" in values or "Switches" in values:
                raise SlurmConfigError("a switch has no name", where=line.where, expected="SwitchName=NAME ...")
            continue
        members = tuple(lists.expanded(values.get("Nodes", ""), line.where))
        below = tuple(lists.expanded(values.get("Switches", ""), line.where, "names of switches"))
        if nodes is not None and members:
            strange = [member for member in members if member not in nodes]
            if strange:
                named = legible(compressed(strange), WORD)
                why = f"ignored, as Slurm does, because slurm.conf does not have them: {named}"
                findings.append(KeyFinding(line.where, "Nodes", KeySupport.WARNED, why))
                members = tuple(member for member in members if member in nodes)
        some = lists.expanded(values["SwitchName"], line.where, "names of switches")
        for switch in some:
            if switch in found:
                raise SlurmConfigError(f"the switch {shown(switch)} is described twice", where=line.where)
            found[switch] = SwitchSettings(name=switch, nodes=members, switches=below)
            places[switch] = line.where
        firsts.extend(some[:1])  # the others of the line have the same switches below
    for each in map(found.__getitem__, firsts):
        for child in each.switches:
            if child not in found:
                hint = did_you_mean(child, list(found)[:1000])
                raise SlurmConfigError(
                    f"there is no switch {shown(child)}",
                    where=places[each.name],
                    hint=hint if hint.startswith("Did") else None,
                )
    _refuse_circles(found, firsts, places)
    leaf_of: dict[str, str] = {}
    for each in found.values():
        if twice := [node for node in each.nodes if leaf_of.setdefault(node, each.name) != each.name]:
            why = f"these nodes are below several leaf switches: {legible(compressed(twice), WORD)}"
            findings.append(KeyFinding(places[each.name], "Nodes", KeySupport.WARNED, why))
    if found and nodes is not None:
        reached = {member for each in found.values() for member in each.nodes}
        if alone := [node for node in nodes if node not in reached]:
            why = f"no switch has these nodes, so no job starts there: {legible(compressed(alone), WORD)}"
            findings.append(KeyFinding(name, "SwitchName", KeySupport.WARNED, why))
    return tuple(found.values()), findings


def _refuse_circles(found: Mapping[str, SwitchSettings], firsts: Sequence[str], places: Mapping[str, str]) -> None:
    above: dict[str, str] = {}
    for name in firsts:
        for child in found[name].switches:
            above.setdefault(child, name)
    harmless: set[str] = set()
    for name in found:
        seen, at = {name}, above.get(name)
        while at is not None and at not in harmless:
            if at in seen:
                raise SlurmConfigError(f"the switch {shown(at)} is below itself", where=places[at])
            seen.add(at)
            at = above.get(at)
        harmless |= seen

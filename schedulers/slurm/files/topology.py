"""Read a topology.conf: the tree of switches."""

from collections.abc import Mapping

from pipistrelle.platforms.naming.hostlists import expanded
from pipistrelle.platforms.slurm.conf import KeyFinding, SlurmConfigError, honoured_values
from pipistrelle.platforms.slurm.lines import Fetch, read_lines
from pipistrelle.protocol.base.errors import did_you_mean, shown
from pipistrelle.schedulers.slurm.config.machine import SwitchSettings


def read_topology(
    text: str, name: str, nodes: Mapping[str, int] | None = None, fetch: Fetch | None = None
) -> tuple[tuple[SwitchSettings, ...], list[KeyFinding]]:
    """Return the switches of a topology.conf, and what happens to its keys.

    Args:
        nodes: {name of a node of the machine: its number}; None: names are not checked.

    Raises:
        SlurmConfigError: a line is malformed, a switch is described twice or is its own descendant, or a name is
            unknown.
    """
    found: dict[str, SwitchSettings] = {}
    places: dict[str, str] = {}
    findings: list[KeyFinding] = []
    for line in read_lines(text, name, fetch, SlurmConfigError):
        values = honoured_values("topology", line, findings)
        if "SwitchName" not in values:
            continue
        members = tuple(expanded(values.get("Nodes", ""), line.where))
        below = tuple(expanded(values.get("Switches", ""), line.where, "names of switches"))
        for member in members if nodes is not None else ():
            if member not in nodes:  # type: ignore[operator]
                raise SlurmConfigError(f"there is no node {shown(member)}", where=line.where)
        for switch in expanded(values["SwitchName"], line.where, "names of switches"):
            if switch in found:
                raise SlurmConfigError(f"the switch {shown(switch)} is described twice", where=line.where)
            found[switch] = SwitchSettings(name=switch, nodes=members, switches=below)
            places[switch] = line.where
    for each in found.values():
        for child in each.switches:
            if child not in found:
                hint = did_you_mean(child, list(found)[:1000])
                raise SlurmConfigError(
                    f"there is no switch {shown(child)}",
                    where=places[each.name],
                    hint=hint if hint.startswith("Did") else None,
                )
    _refuse_circles(found, places)
    return tuple(found.values()), findings


def _refuse_circles(found: Mapping[str, SwitchSettings], places: Mapping[str, str]) -> None:
    above: dict[str, str] = {}
    for switch in found.values():
        for child in switch.switches:
            above.setdefault(child, switch.name)
    for name in found:
        seen, at = {name}, above.get(name)
        while at is not None:
            if at in seen:
                raise SlurmConfigError(f"the switch {shown(at)} is below itself", where=places[at])
            seen.add(at)
            at = above.get(at)

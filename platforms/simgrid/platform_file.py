"""SimGrid's platform files as Batsim reads them.

They give hosts, their roles and their numbers.
"""

import re
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Final, Literal

import msgspec
from msgspec import UNSET

from pipistrelle.platforms.description import Platform, Pool, Property, is_name
from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.naming.node_names import NodeNames
from pipistrelle.platforms.simgrid.elements import HostKind, read_elements
from pipistrelle.protocol.base.errors import did_you_mean, shown

#: what Batsim uses a host for
Role = Literal["compute_node", "storage", "master"]

_ROLES: Final[tuple[Role, ...]] = ("compute_node", "storage", "master")
_LONGEST_TITLE: Final = 300
_MASTER: Final = re.compile("master_host[0-9]*")


class Host(HostKind, frozen=True, kw_only=True, gc=False):
    """A host of a SimGrid platform, with its number and role in Batsim.

    Its `properties` include ``role``, which is empty if neither the file nor the user gives a role.

    Args:
        id: Batsim's number: from 0 for compute hosts, then for storages; -1 for the master.
        name: its name in the file.
    """

    id: int
    name: str
    role: Role


class SimGridPlatform(msgspec.Struct, frozen=True, kw_only=True):
    """The hosts of a SimGrid platform file.

    Args:
        name: the file's name without folder and suffix.
        hosts: compute hosts, at least one, numbered from 0. They are sorted by the bytes of their names, as in Batsim
            4: h0, h1, h10, h2.
        storages: storage hosts in the same order; their numbers follow those of `hosts`.
        master: the host of Batsim's own processes; None if the file has none.
        unused: (name, count) of elements and attributes without effect, in the order of first occurrence. The name is
            an element, or an element and an attribute. These only describe the network, or need other files.
    """

    name: str
    hosts: tuple[Host, ...]
    storages: tuple[Host, ...]
    master: Host | None
    unused: tuple[tuple[str, int], ...]

    def limited(self, count: int) -> "SimGridPlatform":
        """Return the platform with only its first `count` compute hosts.

        The storages stay and are renumbered.

        Raises:
            PlatformError: if there are fewer compute hosts, or `count` is less than 1.
        """
        if not 1 <= count <= len(self.hosts):
            raise PlatformError(
                f"platform '{self.name}' cannot be limited to {count} hosts",
                expected=f"1 to {len(self.hosts)}, the compute hosts",
            )
        storages = tuple(
            msgspec.structs.replace(host, id=number) for number, host in enumerate(self.storages, start=count)
        )
        return msgspec.structs.replace(self, hosts=self.hosts[:count], storages=storages)

    def to_platform(self) -> Platform:
        """Return the machine for native runs.

        Each compute host becomes a node of one unit. Nodes have the numbers of hosts, and their names if all are valid
        names of nodes. Consecutive hosts that differ only in name form a pool. The pool's properties are ``speed``
        (initial, flop/s), ``cores``, ``first_host``, ``last_host``, and the props of its hosts and zones whose keys are
        valid in a platform.
        """
        groups = [tuple(group) for _, group in groupby(self.hosts, key=_likeness)]
        names = [NodeNames.of([host.name for host in group]) for group in groups]
        named = all(names)
        pools = tuple(
            Pool(
                name=f"hosts-{number}" if len(groups) > 1 else "hosts",
                nodes=len(group),
                names=str(names[number]) if named else UNSET,
                properties=_pool_properties(group[0], group[-1]),
            )
            for number, group in enumerate(groups)
        )
        return Platform(name=self.name, description="hosts of a SimGrid platform", pools=pools)


def parse_simgrid(
    text: str,
    where: str,
    *,
    master: str | None = None,
    roles: Mapping[str, str] | None = None,
    energy: bool = True,
) -> SimGridPlatform:
    """Return the hosts in a SimGrid platform XML of version 4 or 4.1.

    Args:
        where: the name of the text in messages, usually a path; its last part becomes the platform's name.
        master: the name of the master host, unless `roles` gives this host another role. None: the only host that is
            called ``master_host`` or, as in some of Batsim's files, ``master_host`` followed by digits.
        roles: {name of a host: additional role}, as for Batsim's option ``--add-role-to-hosts``.
        energy: whether power is simulated; if not, invalid watts are ignored.

    Raises:
        PlatformError: if the text is not such XML, a value or role is invalid, a host has two roles, there are two
            masters, or there is no compute host.
    """
    contents = read_elements(text, where, energy=energy)
    added = dict(roles or {})
    for name in added:
        if name not in contents.hosts:
            hint = did_you_mean(name, list(contents.hosts))
            raise PlatformError(f"a role is added to the unknown host {shown(name)}", where=where, hint=hint)
    if master is None:
        master = _likely_master(contents.hosts)
    if master in contents.hosts:
        added.setdefault(master, "master")
    places: dict[Role, list[tuple[str, HostKind, dict[str, str]]]] = {role: [] for role in _ROLES}
    known: dict[tuple[int, str | None], tuple[Role, dict[str, str]]] = {}
    # Sort by code points, which is the order of UTF-8 bytes. Batsim sorts only a copy by the numbers in names.
    for name in sorted(contents.hosts):
        kind, line = contents.hosts[name]
        key = (id(kind), added.get(name))
        if key not in known:
            known[key] = _in_role(name, kind, added.get(name), f"{where}, line {line}")
        role, properties = known[key]
        places[role].append((name, kind, properties))
    if len(places["master"]) > 1:
        raise PlatformError(
            "a platform has at most one master",
            where=where,
            expected=f"one host called {shown(master)} or with the role 'master'",
            found=" and ".join(shown(name) for name, _, _ in places["master"][:2]),
        )
    if not places["compute_node"]:
        raise PlatformError(
            "the platform has no compute hosts",
            where=where,
            expected="a <host>, <cluster>, <cabinet> or <peer> other than the master and storages",
        )
    masters = _hosts(places["master"], "master", -1)
    return SimGridPlatform(
        name=_title(where),
        hosts=_hosts(places["compute_node"], "compute_node", 0),
        storages=_hosts(places["storage"], "storage", len(places["compute_node"])),
        master=masters[0] if masters else None,
        unused=tuple(contents.unused.items()),
    )


def _likely_master(hosts: Iterable[str]) -> str:
    named = [name for name in hosts if _MASTER.fullmatch(name)]
    return named[0] if len(named) == 1 else "master_host"


def _in_role(name: str, kind: HostKind, added: str | None, where: str) -> tuple[Role, dict[str, str]]:
    declared = kind.properties.get("role", "")
    if added and declared and added != declared:
        raise PlatformError(
            f"host {shown(name)} has two roles",
            where=where,
            expected="one, in the file or on the command line",
            found=f"{shown(declared)} in the file, {shown(added)} added",
        )
    said = added or declared
    role = next((role for role in _ROLES if role == (said or "compute_node")), None)
    if role is None:
        raise PlatformError(
            f"host {shown(name)} has an unknown role",
            where=where,
            expected="'compute_node', 'storage' or 'master'",
            found=shown(said),
            hint=did_you_mean(said, list(_ROLES)),
        )
    if role == "compute_node":
        other = {number for triple in kind.sleep_pstates for number in msgspec.structs.astuple(triple)}
        for pstate, speed in enumerate(kind.speeds):
            if not speed and pstate not in other:
                raise PlatformError(
                    f"host {shown(name)} cannot compute",
                    where=where,
                    expected="a speed above 0 in each pstate to compute in",
                    found=f"pstate {pstate} of speed 0",
                    hint="Give a storage host the role 'storage'.",
                )
    return role, {**kind.properties, "role": said}


def _hosts(places: list[tuple[str, HostKind, dict[str, str]]], role: Role, first: int) -> tuple[Host, ...]:
    return tuple(
        Host(id=number, name=name, role=role, **{**msgspec.structs.asdict(kind), "properties": properties})
        for number, (name, kind, properties) in enumerate(places, start=first)
    )


def _title(where: str) -> str:
    """Return a platform's name: the printable last part of its file's path."""
    name = re.split(r"[/\\]", where)[-1].removesuffix(".xml")
    name = "".join(letter if letter.isprintable() else "?" for letter in name)[:_LONGEST_TITLE]
    return name if name.strip() else "platform"


def _likeness(host: Host) -> tuple[object, ...]:
    return tuple(getattr(host, field) for field in HostKind.__struct_fields__)


def _pool_properties(first: Host, last: Host) -> dict[str, Property]:
    props = {**first.zone_properties, **first.properties}
    del props["role"]  # all hosts of a pool are compute hosts
    return {
        **{name: value for name, value in props.items() if is_name(name)},
        "speed": first.speeds[first.pstate],
        "cores": first.cores,
        "first_host": first.name,
        "last_host": last.name,
    }

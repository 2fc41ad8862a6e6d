"""Read SimGrid's platform XML by element: hosts, and counts of unused elements."""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import nullcontext, suppress
from functools import partial
from itertools import chain
from typing import Final, NoReturn, TypeVar

import msgspec

from pipistrelle.platforms.description import MOST_UNITS
from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.simgrid.grammar import ATTRIBUTES, CONTENT, KNOWN, PROFILES
from pipistrelle.platforms.simgrid.quantities import (
    SleepPstate,
    Watts,
    parse_count,
    parse_radical,
    parse_sleep_pstates,
    parse_speeds,
    parse_topology,
    parse_watt,
    parse_watts,
)
from pipistrelle.protocol.base.errors import did_you_mean, shown
from pipistrelle.protocol.base.markup import XmlReader

_T = TypeVar("_T")

_MANUAL: Final = "'pipistrelle help platforms' lists what is read."
_DEEPEST: Final = 100  # nested zones: real files have about ten


class HostKind(msgspec.Struct, frozen=True, kw_only=True):
    """The values that all hosts of one XML element have in common.

    Args:
        speeds: the speed of a core in each pstate (flop/s); at least one.
        cores: the number of cores.
        pstate: the initial pstate.
        properties: the props of the element.
        zone_properties: the props of the zones around the element; inner zones override outer ones.
        watts: the power in each pstate; empty if the file does not give it.
        watt_off: the power when off (W); 0 if the file does not give it.
        sleep_pstates: the pstates for sleeping, in the order of the file.
    """

    speeds: tuple[float, ...]
    cores: int
    pstate: int
    properties: dict[str, str]
    zone_properties: dict[str, str]
    watts: tuple[Watts, ...]
    watt_off: float
    sleep_pstates: tuple[SleepPstate, ...]


class Contents(msgspec.Struct, frozen=True):
    """The hosts of a SimGrid platform file, and its elements that are not used.

    Args:
        hosts: {name of a host: its kind and its line in the file}, in the order of the file.
        unused: how often each element or attribute without effect occurs: {name: count}. The name of an attribute
            includes its element.
    """

    hosts: dict[str, tuple[HostKind, int]]
    unused: dict[str, int]


class _Element:
    def __init__(self, name: str, attributes: dict[str, str], line: int) -> None:
        self.name = name
        self.attributes = attributes
        self.line = line
        self.properties: dict[str, str] = {}
        self.zone_properties: dict[str, str] = {}
        self.has_content = False

    def __str__(self) -> str:
        identity = self.attributes.get("id")
        return f"<{self.name}>" if identity is None else f"{self.name} {shown(identity)}"


def read_elements(text: str, where: str, *, energy: bool = True) -> Contents:
    """Read the hosts of a SimGrid platform file, and count what is not used.

    Nothing outside the text is read; the document type is never fetched.

    Args:
        where: the name of the text in messages, usually a file name.
        energy: whether power is simulated; if not, invalid watts are ignored.

    Raises:
        PlatformError: if the text is not XML (with line and column), declares entities, or breaks a rule of SimGrid's
            format (with line, element and id).
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise PlatformError("the text is not Unicode", where=where, hint="Save the file as UTF-8.") from None
    return _Reader(where, energy=energy).read(text)


class _Reader(XmlReader):
    error = PlatformError
    subject = "a platform"
    hint = "A platform begins with <platform version='4.1'>; each element is closed, each value quoted."

    def __init__(self, where: str, *, energy: bool) -> None:
        super().__init__(where)
        self._energy = energy
        self._open: list[_Element] = []
        self._hosts: dict[str, tuple[HostKind, int]] = {}
        self._kinds: dict[tuple[object, ...], HostKind] = {}
        self._unused: Counter[str] = Counter()
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.CharacterDataHandler = self._characters

    def read(self, text: str) -> Contents:
        self.parse(text)  # SimGrid also accepts blank lines before the declaration; some of its own files have them
        return Contents(self._hosts, dict(self._unused))

    def _fail(self, what: str, *, line: int | None = None, **said: str | None) -> NoReturn:
        """Raise a PlatformError about a line of the file, by default the current line."""
        raise PlatformError(what, where=f"{self.where}, line {line or self.line()}", **said)

    def _doctype(self, _name: str, _system: str | None, _public: str | None, declares: int) -> None:
        if declares:
            self._fail(
                "a platform's document type must not declare anything",
                expected='<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd"> or none',
            )

    def begin(self, name: str, attributes: dict[str, str]) -> None:
        element = _Element(name, attributes, self.line())
        self._check_place(element)
        if name in ATTRIBUTES:
            self._check_attributes(element)
        if name == "prop":
            self._take_property(element, self._open[-1])
        elif self._open:
            self._enter(self._open[-1])
        if name == "platform":
            self._check_version(attributes["version"].strip())
        self._open.append(element)
        if len(self._open) > _DEEPEST:
            self._fail("zones are nested too deep", expected=f"at most {_DEEPEST} nested elements")

    def _enter(self, parent: _Element) -> None:
        """Record that ``parent`` now has a child other than ``prop``.

        No ``prop`` may follow such a child.
        """
        if not parent.has_content:
            parent.has_content = True
            outer = self._open[-2].zone_properties if len(self._open) > 1 else {}
            parent.zone_properties = {**outer, **parent.properties} if parent.properties else outer

    def _check_place(self, element: _Element) -> None:
        if not self._open:
            if element.name != "platform":
                found = f"<{element.name[:40]}>"
                self._fail("this is not a SimGrid platform", expected="<platform version='4.1'>", found=found)
            return
        parent = self._open[-1]
        if element.name in CONTENT.get(parent.name, ()):
            return
        if element.name == "include":
            self._fail("<include> is not supported", hint="Replace it by the file's content; SimGrid needs that, too.")
        if element.name not in KNOWN:
            self._fail(
                f"unknown element {shown(element.name)} in {parent}",
                hint=f"{did_you_mean(element.name, sorted(CONTENT.get(parent.name, KNOWN)))} {_MANUAL}",
            )
        self._fail(
            f"{element} is not allowed in {parent}",
            expected=", ".join(sorted(CONTENT.get(parent.name, ()))) or "no elements",
        )

    def _check_attributes(self, element: _Element) -> None:
        needed, known = ATTRIBUTES[element.name]
        for attribute in element.attributes:
            if attribute not in known:
                hint = did_you_mean(attribute, sorted(known))
                self._fail(f"{element} has an unknown attribute {shown(attribute)}", hint=hint)
        for attribute in needed:
            if attribute not in element.attributes:
                self._fail(f"{element} has no {attribute}", expected=f"the attribute(s) {', '.join(needed)}")
        if not element.attributes.get("id", "-"):
            self._fail(f"{element} has an empty id")

    def _check_version(self, text: str) -> None:
        if not re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,9})?", text):
            self._fail("a version cannot be read", expected="4.1", found=shown(text))
        version = float(text)
        if version < 4:
            self._fail(
                "this SimGrid platform is of an old version",
                expected="version 4 or 4.1",
                found=shown(text),
                hint="SimGrid's program simgrid_update_xml brings it up to date.",
            )
        if round(version * 100) > 410:
            self._fail("this SimGrid platform is of a newer version", expected="4.1", found=shown(text))

    def _take_property(self, prop: _Element, owner: _Element) -> None:
        if owner.name not in ATTRIBUTES:
            return
        name, value = prop.attributes["id"], prop.attributes["value"]
        if owner.name in ("zone", "AS") and owner.has_content:
            self._fail(f"{prop} stands too late in {owner}", expected="a zone's props before its other elements")
        if owner.properties.setdefault(name, value) != value:
            self._fail(f"{owner} has the {prop} twice", found=f"{shown(owner.properties[name])} and {shown(value)}")

    def _characters(self, text: str) -> None:
        if text.strip() and self._open[-1].name != "trace":
            self._fail(f"text between the elements of {self._open[-1]}", found=shown(text.strip()))

    def end(self, name: str) -> None:
        element = self._open.pop()
        if name in ("host", "peer"):
            self._unused.update(f"{name} {profile}" for profile in PROFILES if element.attributes.get(profile))
            self._add(element, self._kind(element, self._open[-1].zone_properties), 1, [element.attributes["id"]])
        elif name in ("cluster", "cabinet"):
            self._add_numbered(element)
        elif name not in ATTRIBUTES:
            self._unused[name] += 1

    def _add_numbered(self, element: _Element) -> None:
        attributes = element.attributes
        ranges = self._parsed(element, parse_radical, attributes["radical"])
        count = sum(len(numbers) for numbers in ranges)
        topology = attributes.get("topology", "FLAT")
        wanted = self._parsed(element, partial(parse_topology, topology), attributes.get("topo_parameters", ""))
        if wanted not in (None, count):
            self._fail(
                f"the radical of {element} does not suit its topology",
                line=element.line,
                expected=f"{shown(wanted)} hosts, according to topo_parameters",
                found=f"{count}",
            )
        # In SimGrid, a FLAT cluster is also a zone with the cluster's properties. A cluster of another topology is not.
        zone_properties = self._open[-1].zone_properties
        if element.properties and topology == "FLAT":
            zone_properties = {**zone_properties, **element.properties}
        names = (f"{attributes['prefix']}{number}{attributes['suffix']}" for number in chain.from_iterable(ranges))
        self._add(element, self._kind(element, zone_properties), count, names)

    def _add(self, element: _Element, kind: HostKind, count: int, names: Iterable[str]) -> None:
        if len(self._hosts) + count > MOST_UNITS:
            self._fail(
                "a platform is too large",
                line=element.line,
                expected=f"at most {MOST_UNITS} hosts in all",
                found=f"{len(self._hosts) + count} with {element}",
            )
        place = (kind, element.line)
        for name in names:
            if name in self._hosts:
                self._fail(
                    f"the host {shown(name)} is described twice",
                    line=element.line,
                    expected="a unique name for each host",
                    found=f"{element}, and line {self._hosts[name][1]} has it too",
                )
            self._hosts[name] = place

    def _kind(self, element: _Element, zone_properties: dict[str, str]) -> HostKind:
        speed, core, pstate = (element.attributes.get(name) for name in ("speed", "core", "pstate"))
        key = (speed, core, pstate, tuple(element.properties.items()), id(zone_properties))
        if key not in self._kinds:
            self._kinds[key] = self._parsed_kind(element, zone_properties)
        return self._kinds[key]

    def _parsed_kind(self, element: _Element, zone_properties: dict[str, str]) -> HostKind:
        attributes, properties = element.attributes, element.properties
        speeds = self._parsed(element, parse_speeds, attributes["speed"])
        cores = self._parsed(element, partial(parse_count, least=1), attributes.get("core", "1"))
        pstate = self._parsed(element, partial(parse_count, least=0), attributes.get("pstate", "0"))
        if pstate >= len(speeds):
            self._fail(
                f"{element} begins in a pstate that it does not have",
                line=element.line,
                expected=f"a pstate from 0 to {len(speeds) - 1}, one for each speed",
                found=f"{pstate}",
            )
        watts: tuple[Watts, ...] = ()
        for name, one_core in (("wattage_per_state", False), ("watt_per_state", True)):
            if name in properties and not watts:
                parse = partial(parse_watts, pstates=len(speeds), cores=cores, one_core=one_core)
                with nullcontext() if self._energy else suppress(PlatformError):
                    watts = self._parsed(element, parse, properties[name])
        watt_off = 0.0
        with nullcontext() if self._energy else suppress(PlatformError):
            watt_off = self._parsed(element, parse_watt, properties.get("wattage_off", properties.get("watt_off", "0")))
        sleep = properties.get("sleep_pstates")
        return HostKind(
            speeds=speeds,
            cores=cores,
            pstate=pstate,
            properties=properties,
            zone_properties=zone_properties,
            watts=watts,
            watt_off=watt_off,
            sleep_pstates=(
                self._parsed(element, partial(parse_sleep_pstates, speeds=speeds), sleep) if sleep is not None else ()
            ),
        )

    def _parsed(self, element: _Element, parse: Callable[[str], _T], text: str) -> _T:
        """Return ``parse(text)``.

        Errors of ``parse`` name the XML ``element`` and its line.
        """
        try:
            return parse(text)
        except PlatformError as error:
            said = {"expected": error.expected, "found": error.found, "hint": error.hint}
            self._fail(f"{element}: {error.what}", line=element.line, **said)

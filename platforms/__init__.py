"""Descriptions of machines: what nodes there are, how they are numbered, and a library of known ones."""

from typing import TYPE_CHECKING

from pipistrelle.protocol.base.first_use import import_on_first_use

if TYPE_CHECKING:
    from pipistrelle.platforms import catalogue
    from pipistrelle.platforms.description import MOST_UNITS, Platform, Pool, Property, Unit, homogeneous
    from pipistrelle.platforms.errors import PlatformError
    from pipistrelle.platforms.read import parse_platform, to_toml
    from pipistrelle.platforms.simgrid.platform_file import Host, SimGridPlatform, parse_simgrid
    from pipistrelle.platforms.simgrid.quantities import SleepPstate, Watts

__all__ = [
    "MOST_UNITS",
    "Host",
    "Platform",
    "PlatformError",
    "Pool",
    "Property",
    "SimGridPlatform",
    "SleepPstate",
    "Unit",
    "Watts",
    "catalogue",
    "homogeneous",
    "parse_platform",
    "parse_simgrid",
    "to_toml",
]

import_on_first_use(
    __name__,
    {
        "catalogue": "",
        "description": "MOST_UNITS Platform Pool Property Unit homogeneous",
        "errors": "PlatformError",
        "read": "parse_platform to_toml",
        "simgrid.platform_file": "Host SimGridPlatform parse_simgrid",
        "simgrid.quantities": "SleepPstate Watts",
    },
)

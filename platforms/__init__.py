"""Descriptions of machines: what nodes there are, how they are numbered, and a library of known ones."""

from pipistrelle.platforms import catalogue
from pipistrelle.platforms.description import MOST_UNITS, Group, Platform, Pool, Property, Unit, homogeneous
from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.read import parse_platform, to_toml

__all__ = [
    "MOST_UNITS",
    "Group",
    "Platform",
    "PlatformError",
    "Pool",
    "Property",
    "Unit",
    "catalogue",
    "homogeneous",
    "parse_platform",
    "to_toml",
]

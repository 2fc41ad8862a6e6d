"""The grammar of SimGrid's platform files (version 4.1): elements and attributes."""

from typing import Final

_ZONE: Final = (
    "prop AS zone link backbone cabinet cluster peer trace trace_connect zoneRoute ASroute bypassASroute "
    "bypassZoneRoute storage_type storage host router host_link route bypassRoute"
)

#: {element: the elements that it may contain}, as in SimGrid's DTD
CONTENT: Final = {
    name: frozenset(content.split())
    for name, content in {
        "platform": "config random cluster cabinet peer AS zone trace trace_connect process actor",
        "zone": _ZONE,
        "AS": _ZONE,
        "host": "disk prop mount",
        "cluster": "prop",
        "config": "prop",
        "disk": "prop",
        "link": "prop",
        "router": "prop",
        "storage": "prop",
        "storage_type": "model_prop prop",
        "actor": "argument prop",
        "process": "argument prop",
        **dict.fromkeys(("route", "bypassRoute", "zoneRoute", "bypassZoneRoute"), "link_ctn"),
        **dict.fromkeys(("ASroute", "bypassASroute"), "link_ctn"),
    }.items()
}
KNOWN: Final = frozenset(CONTENT).union(*CONTENT.values())

_CLUSTER_NETWORK: Final = (
    "bw lat sharing_policy bb_bw bb_lat bb_sharing_policy router_id limiter_link loopback_bw loopback_lat"
)
#: profiles that switch off or slow down hosts over time: they are read and counted, but not applied
PROFILES: Final = ("speed_file", "availability_file", "state_file")
#: {element that is used: (required attributes, all allowed attributes)}
ATTRIBUTES: Final = {
    name: (tuple(needed.split()), frozenset(f"{needed} {more}".split()))
    for name, needed, more in (
        ("platform", "version", ""),
        ("zone", "id", "routing"),
        ("AS", "id", "routing"),
        ("host", "id speed", f"core pstate coordinates {' '.join(PROFILES)}"),
        ("cluster", "id prefix radical suffix speed", f"core topology topo_parameters {_CLUSTER_NETWORK}"),
        ("cabinet", "id prefix radical suffix speed", "bw lat"),
        ("peer", "id speed", f"bw_in bw_out lat coordinates {' '.join(PROFILES)}"),
        ("prop", "id value", ""),
    )
}


def is_xml(text: str) -> bool:
    """Return whether a text looks like XML: its first visible character is ``<``."""
    return text.lstrip("\ufeff \t\r\n").startswith("<")

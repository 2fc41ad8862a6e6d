"""Node positions as a program in another language reads them from a message: docs/examples/placement/places.js."""

import shutil
import subprocess
from pathlib import Path

import pytest

from pipistrelle.platforms import catalogue
from pipistrelle.platforms.read import parse_platform
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.protocol import codec
from pipistrelle.protocol.events import SimulationBegins, SimulationBeginsData
from pipistrelle.protocol.messages import Notice

PROGRAM = Path(__file__).parents[2] / "docs" / "examples" / "placement" / "places.js"
GROUPS = (
    'name = "m"\npools = [{ name = "a", nodes = 2 }, { name = "b", nodes = 6, names = "x,n[08-12]" }]\n'
    '[topology]\nkind = "groups"\nshape = [2, 2]\nnodes_per_router = 2\n'
)


@pytest.mark.parametrize("name", ["titan", "groups", "tiny"])
def test_javascript_finds_the_same_places(name: str) -> None:
    """All coordinates of all nodes, from the frame that a scheduler receives."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed")
    platform = parse_platform(GROUPS, "m") if name == "groups" else catalogue.get(name)
    begins = SimulationBegins(0.0, SimulationBeginsData(platform.units, platform.info))
    frame = codec.encode(Notice(1, 0.0, (begins,)))
    out = subprocess.run([node, PROGRAM], input=frame, capture_output=True, check=True).stdout.decode()

    table = Machine(platform.units, platform.info).nodes
    told = [line.split() for line in out.splitlines()]
    flat = not table.topology.info.shape
    assert [[int(cell) for cell in row[2:]] for row in told] == ([[]] * len(table) if flat else table.place.tolist())
    if name == "titan":
        assert [row[1] for row in told] == list(table.names)

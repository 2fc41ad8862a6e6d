"""The copy of associations and QOS, compared with the file that a slurmctld 22.05 with a real slurmdbd wrote.

The folder slurmdbd has this file, and what sacctmgr printed. Each flag of a QOS was set by sacctmgr.
"""

from pathlib import Path
from struct import calcsize, unpack_from

import pytest

from pipistrelle.runs.slurmctld.association_state import write_association_state
from pipistrelle.runs.slurmctld.wire import NO_VALUE
from pipistrelle.schedulers.slurm.files.accounting import read_accounting

REAL = Path(__file__).parent / "slurmdbd"
#: what slurmdbd numbers in its own order, and descriptions
OTHER = frozenset({"description", "id", "left", "right", "parent id"})
KINDS = {"QOS": 1447, "association": 1404}
LIMITS = ("tres", "run", "minutes")
QOS = (
    *(("description", "s"), ("id", "L"), ("flags", "L"), ("grace", "L")),
    *((f"group {name}", "s") for name in LIMITS),
    *((f"group limit {number}", "L") for number in range(4)),
    *((f"max {number}", "s") for number in range(7)),
    *((f"limit {number}", "L") for number in range(8)),
    *(("min", "s"), ("name", "s"), ("preempted", "B"), ("list", "n"), ("mode", "H"), ("exempt", "L")),
    *(("priority", "L"), ("usage factor", "d"), ("threshold", "d"), ("limit factor", "d")),
)
ASSOCIATION = (
    *(("accounting", "L"), ("account", "s"), ("cluster", "s"), ("default qos", "L"), ("flags", "H"), ("shares", "L")),
    *((f"group {name}", "s") for name in LIMITS),
    *((f"group limit {number}", "L") for number in range(4)),
    *(("id", "L"), ("is default", "H"), ("left", "L")),
    *((f"max {number}", "s") for number in range(4)),
    *((f"limit {number}", "L") for number in range(5)),
    *(("parent", "s"), ("parent id", "L"), ("partition", "s"), ("priority", "L"), ("qos", "n")),
    *(("right", "L"), ("uid", "L"), ("user", "s")),
)


class Reader:
    """Reads numbers and texts of a file of states."""

    def __init__(self, data: bytes, place: int) -> None:
        self.data, self.place = data, place

    def number(self, letter: str) -> float:
        """Return the next number."""
        (value,) = unpack_from(f">{letter}", self.data, self.place)
        self.place += calcsize(f">{letter}")
        return float(value)

    def text(self) -> str:
        """Return the next text."""
        length = int(self.number("L"))
        self.place += length
        return self.data[self.place - length : self.place].rstrip(b"\0").decode()

    def value(self, letter: str) -> object:
        """Return the next value: a number, s: text, n: list of texts, B: set of numbers."""
        if letter == "s":
            return self.text()
        if letter not in "nB":
            return self.number(letter)
        count = int(self.number("L"))
        if letter == "B":
            return None if count == NO_VALUE else self.text()
        return None if count == NO_VALUE else [self.text() for _ in range(count)]


def records(data: bytes, kind: str) -> dict[object, dict[str, object]]:
    """Return the records of a list by name, or by account and user."""
    reader = Reader(data, data.index(KINDS[kind].to_bytes(2, "big"), 10) + 2)
    found = {}
    for _ in range(int(reader.number("L"))):
        one = {name: reader.value(letter) for name, letter in (QOS if kind == "QOS" else ASSOCIATION)}
        found[one.get("name") or (one["account"], one["user"])] = one
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_records_are_those_of_slurmdbd(tmp_path: Path, kind: str) -> None:
    """Flags, modes of preemption, shares of a parent, accounts below accounts, and limits have the same values."""
    texts = [(name, (REAL / name).read_text()) for name in ("assoc.txt", "qos.txt")]
    users = {"ada": NO_VALUE, "bob": NO_VALUE}  # unknown to the computer on which slurmdbd ran
    write_association_state(tmp_path, read_accounting(texts, "rec"), "rec", ["gres/gpu"], users, 0)
    real = records((REAL / "assoc_mgr_state").read_bytes(), kind)
    ours = records((tmp_path / "assoc_mgr_state").read_bytes(), kind)
    assert real.keys() == ours.keys()
    for name, one in real.items():
        differing = {key: (value, ours[name][key]) for key, value in one.items() if ours[name][key] != value}
        assert differing.keys() <= OTHER, (name, differing)


def test_mode_off_of_a_qos_is_that_of_the_cluster(tmp_path: Path) -> None:
    """sacctmgr 22.05 stores PreemptMode=OFF as 0 and shows it as cluster."""
    commands = "add qos one PreemptMode=OFF\nadd qos other PreemptMode=cluster\n"
    write_association_state(tmp_path, read_accounting([("accounts.txt", commands)]), "rec", [], {}, 0)
    found = records((tmp_path / "assoc_mgr_state").read_bytes(), "QOS")
    real = records((REAL / "assoc_mgr_state").read_bytes(), "QOS")
    assert found["one"]["mode"] == found["other"]["mode"] == real["off"]["mode"] == 0

"""Given the replies that a real Batsim got, our server sends Batsim's messages and writes the same files."""

import csv
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pipistrelle.platforms.simgrid.platform_file import parse_simgrid
from pipistrelle.protocol.batsim import codec as batsim_codec
from pipistrelle.protocol.messages import HelloData, Notice, Reply, WelcomeData
from pipistrelle.server.batsim.outputs import BatsimOutputs
from pipistrelle.server.errors import SchedulerFailed
from pipistrelle.server.setup.setup import BatsimOptions, Setup
from pipistrelle.server.simulation.simulate import simulate
from pipistrelle.traces.load import load

CLIENTS = (
    "batsched_conservative_bf",
    "batsched_easy_bf",
    "batsched_easy_bf_fast",
    "batsched_filler",
    "batsched_killer",
    "batsched_submitter",
    "pybatsim_easyBackfill",
    "pybatsim_fillerSched",
)
#: what names a version, or is measured on the wall clock
APART = {"batsim_version", "scheduling_time", "simulation_time"}


class Recorded:
    """A transport without a peer: it records frames, and returns the recorded replies."""

    apart = True

    def __init__(self, frames: list[list[str]]) -> None:
        self._replies = [text for direction, text in frames if direction == "sched->batsim"]
        self._notice: Notice | None = None
        self.sent: list[dict[str, Any]] = []

    def greet(self, run_id: str, server: str) -> tuple[HelloData, WelcomeData]:
        """Do nothing: the dialect has no handshake."""
        return HelloData("recorded"), WelcomeData(1, (), run_id)

    def send(self, notice: Notice) -> None:
        """Record the frame."""
        self._notice = notice
        self.sent.append(json.loads(batsim_codec.encode_notice(notice)))

    def receive(self) -> Reply:
        """Return the next recorded reply."""
        assert self._notice is not None
        if not self._replies:
            raise SchedulerFailed("the recording is over")
        return batsim_codec.decode_reply(self._replies.pop(0).encode(), self._notice)

    def farewell(self, notice: Notice) -> None:
        """Keep the last notice; it has an empty reply, too."""
        self.send(notice)
        with suppress(SchedulerFailed):
            self.receive()

    def close(self) -> None:
        """Do nothing."""


def played(folder: Path, client: str, out: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return what we sent and what Batsim had sent."""
    frames = [json.loads(line) for line in (folder / f"wire_{client}.jsonl").read_text().splitlines()]
    theirs = [json.loads(text) for direction, text in frames if direction == "batsim->sched"]
    submitter = client.endswith("submitter")
    transport = Recorded(frames)
    machine = parse_simgrid((folder / "nonet4.xml").read_text(), "nonet4.xml")
    config = theirs[0]["events"][0]["data"]["config"]
    options = BatsimOptions(dynamic_jobs=submitter, forward_profiles=config["profiles-forwarded-on-submission"])
    result = simulate(
        Setup.of(machine, load(folder / "tiny.json"), batsim=options),
        transport,
        clock=lambda: 0.0,
        outputs=BatsimOutputs(str(out / "out")),
    )
    assert result.failure is None
    return transport.sent, theirs


def comparable(notice: dict[str, Any]) -> tuple[float, list[str]]:
    """Return a message without its order within an instant, times to six decimals, without what names files."""
    events = []
    for event in notice["events"]:
        data = dict(event["data"])
        for name in ("workloads", "platform"):
            data.pop(name, None)
        if "config" in data:
            data["config"] = {key: value for key, value in data["config"].items() if not key.startswith("redis-")}
        events.append(json.dumps([round(event["timestamp"], 6), event["type"], _rounded(data)], sort_keys=True))
    return round(notice["now"], 6), sorted(events)


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return round(float(value), 6) if isinstance(value, int | float) and not isinstance(value, bool) else value


@pytest.mark.parametrize("client", CLIENTS)
def test_the_same_replies_give_the_notices_that_batsim_sent(batsim4_dir: Path, client: str, tmp_path: Path) -> None:
    """Message by message: the same times, the same events, the same data."""
    ours, theirs = played(batsim4_dir, client, tmp_path)
    assert [comparable(notice) for notice in ours] == [comparable(notice) for notice in theirs]


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("file", ["jobs", "schedule"])
def test_the_same_replies_give_the_files_that_batsim_wrote(
    batsim4_dir: Path, client: str, file: str, tmp_path: Path
) -> None:
    """Row by row and column by column, in the same order."""
    played(batsim4_dir, client, tmp_path)
    ours, theirs = (
        [
            {name: value for name, value in row.items() if name not in APART}
            for row in csv.DictReader(path.read_text().splitlines())
        ]
        for path in (tmp_path / f"out_{file}.csv", batsim4_dir / f"tiny.{client}.{file}.csv")
    )
    assert ours == theirs


def test_recorded_host_switching_is_reproduced(batsim4_dir: Path) -> None:
    """Message by message up to the end of the recording: power states, calls and the jobs in between."""
    lines = (batsim4_dir / "wire_batsched_energy_bf_monitoring.first60.jsonl").read_text().splitlines()
    frames = [json.loads(line) for line in lines]
    theirs = [json.loads(text) for direction, text in frames if direction == "batsim->sched"]
    # The platform's speeds are not on the wire: those that compute matter to no job here; the two to switch through
    # last 6.1 s and 151.52 s.
    speeds = ",".join(["1Gf"] * 13 + ["1f", repr(1 / 6.1), repr(1 / 151.52)])
    hosts = "".join(
        f'<host id="{host["name"]}" speed="{speeds}">'
        + "".join(
            f'<prop id="{name}" value="{value}"/>' for name, value in host["properties"].items() if name != "role"
        )
        + "</host>"
        for host in theirs[0]["events"][0]["data"]["compute_resources"]
    )
    machine = parse_simgrid(f'<platform version="4.1"><zone id="z">{hosts}</zone></platform>', "hosts")
    transport = Recorded(frames)
    setup = Setup.of(machine, load(batsim4_dir / "tiny.json"), batsim=BatsimOptions(energy=True))

    result = simulate(setup, transport, clock=lambda: 0.0)

    assert isinstance(result.failure, SchedulerFailed)  # there the recording ends
    assert len(theirs) == 30
    assert [comparable(notice) for notice in transport.sent[: len(theirs)]] == [comparable(notice) for notice in theirs]

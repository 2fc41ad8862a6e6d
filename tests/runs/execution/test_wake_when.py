"""A scheduler that is woken only when an event can change its decisions decides as one that is woken always."""

import csv
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.runs.stories import POLICIES, Story, stories, straight

from pipistrelle.protocol.messages import HelloData
from pipistrelle.schedulers.composed import ComposedPolicy
from pipistrelle.schedulers.runtime.runtime import Runtime

HELLO = Runtime.hello
MANY = 25
EXACT = sorted(
    f"{order}-{backfill}-lowest"
    for order in ("fcfs", "sjf")
    for backfill in ("none", "firstfit", "easy", "easy-sjbf", "easy-fixed", "easy-slices", "fill", "depth")
)


def without(*features: str) -> Any:
    """Let schedulers of this process request all features except for these."""

    def hello(self: Runtime) -> HelloData:
        told = HELLO(self)
        return replace(told, features=tuple(one for one in told.features if one not in features))

    return patch.object(Runtime, "hello", hello)


def outputs(folder: Path, leave_out: Sequence[str] = ()) -> dict[str, Any]:
    """Return what each output file tells, without the numbers of notices and the features of the session."""
    found: dict[str, Any] = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
    config = json.loads(found["out_config.json"])
    config["scheduler"].pop("features")
    rows = list(csv.DictReader(found["out_decisions.csv"].decode().splitlines()))
    for row in rows:
        row.pop("reply_to", None)
        row.pop("notice", None)
    return {**found, "out_config.json": config, "out_decisions.csv": rows}


@settings(max_examples=MANY, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(story=stories(), name=st.sampled_from(sorted(POLICIES)))
def test_fewer_notices_change_no_output(story: Story, name: str) -> None:
    """With failures, maintenance, classes, cancellations, dependencies, preemption and polling.

    Without the feature ``wake_when`` a scheduler uses the wake filter alone.
    """
    with tempfile.TemporaryDirectory() as base:
        fewest = straight(story, POLICIES[name](), Path(base, "fewest"))
        with without("wake_when"):
            fewer = straight(story, POLICIES[name](), Path(base, "fewer"))
        with patch.object(ComposedPolicy, "wake_when", return_value=None):
            most = straight(story, POLICIES[name](), Path(base, "most"))

        assert fewest[0] == fewer[0] == most[0]
        assert outputs(Path(base, "fewest")) == outputs(Path(base, "fewer")) == outputs(Path(base, "most"))


@settings(max_examples=MANY, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(story=stories(), name=st.sampled_from(EXACT))
def test_no_filter_at_all_gives_the_same_outputs(story: Story, name: str) -> None:
    """For orders and machines that neither reject jobs nor follow usage, even the wake filter changes nothing."""
    assume(not story.platform.classes)
    with tempfile.TemporaryDirectory() as base:
        fewest = straight(story, POLICIES[name](), Path(base, "fewest"))
        with without("wake_filter", "wake_when"):
            most = straight(story, POLICIES[name](), Path(base, "most"))

        assert fewest[0] == most[0]
        assert outputs(Path(base, "fewest")) == outputs(Path(base, "most"))

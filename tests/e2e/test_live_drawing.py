"""What ``--live`` draws of a run's state, in any size and with any texts."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace as with_values
from rich.cells import cell_len

from pipistrelle.cli.live.drawing import Drawing
from pipistrelle.reports.live.state import SeenDecision, SeenWaiting
from pipistrelle.reports.live.watch import LiveWatch
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.connection import InProcess
from pipistrelle.runs.execution.run import RunOptions, run
from pipistrelle.runs.inputs.named import load_platform
from pipistrelle.schedulers.catalogue.registry import make_policy
from pipistrelle.server.setup.setup import Setup
from pipistrelle.traces.generator import generate

#: what steers a terminal, is twice as wide as it is long, or would be markup
ODD = "\x1b[2J\x07\r\n[red]漢字 é\u202e\u0301"


class _Last:
    """A view that keeps the busiest state."""

    every = 0.0
    state = None

    def show(self, state) -> None:
        """Keep it."""
        if self.state is None or state.queue > self.state.queue:
            self.state = state

    def over(self, state) -> None:
        """Leave it."""


@pytest.fixture(scope="module")
def seen():
    """Return a setup and a state of its run in which jobs wait, with odd texts everywhere."""
    trace = generate(jobs=200, units=1008, seed=2, load=1.3)
    trace = replace(trace, labels={"user": [f"{ODD} {job % 3}" for job in range(200)]}, name=ODD)
    setup = Setup.of(load_platform("salomon"), trace)
    view = _Last()
    watch = LiveWatch(setup, [view])
    run(
        RunSpec(),
        RunOptions(
            setup=setup, connection=InProcess(make_policy("easy")), observers=[watch], look=lambda s: watch(s) * 0
        ),
    )
    odd = SeenDecision(1e6, ODD, ODD * 9, 3, "0-2", ODD * 9, "")
    waits = SeenWaiting(ODD, 3, 0.0, None, ODD, ODD)
    state = with_values(
        view.state, decisions=(odd, with_values(odd, refused=ODD), *view.state.decisions), keeps=(ODD,),
        longest=(waits, *view.state.longest), scheduler=ODD,
    )  # fmt: skip
    return setup, state


@given(st.integers(1, 200), st.integers(1, 60), st.sampled_from(["colours", "letters", "ascii"]))
def test_it_fits_and_steers_nothing(seen, width, height, abilities):
    """Lines fit the size, and no text of a log reaches the terminal as a control code."""
    setup, state = seen
    lines = Drawing(setup, abilities).lines(state, width, height)

    assert 1 <= len(lines) <= height
    assert max(cell_len(line.plain) for line in lines) <= width
    assert all(line.plain.isprintable() for line in lines)


def test_parts_give_way_in_their_order(seen):
    """With little space, figures come first, then machine, queue and last decisions."""
    setup, state = seen

    def parts(height):
        text = "\n".join(line.plain for line in Drawing(setup, "colours").lines(state, 100, height))
        return [
            name for name in ("jobs ended", "queue:", "machine:", "waiting longest", "last decisions") if name in text
        ]

    assert parts(3) == ["jobs ended"]
    assert parts(5) == ["jobs ended", "queue:"]
    assert parts(9) == ["jobs ended", "queue:", "machine:"]
    assert parts(24) == ["jobs ended", "queue:", "machine:", "waiting longest", "last decisions"]


def test_every_job_is_on_the_map(seen):
    """With a cell per node, each node is free, down or in use as in the state."""
    setup, state = seen
    lines = Drawing(setup, "letters").lines(state, 160, 60)
    begin = next(number for number, line in enumerate(lines) if line.plain.startswith("machine:"))
    end = next(number for number, line in enumerate(lines) if line.plain.startswith("waiting"))
    cells = "".join(line.plain for line in lines[begin + 1 : end])

    assert cells.count("·") == (state.machine.on < 0).sum()
    assert sum(cell.isalpha() for cell in cells) == (state.machine.on >= 0).sum()

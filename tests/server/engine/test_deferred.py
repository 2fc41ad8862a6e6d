"""Observers that are called a little later."""

from typing import Any

import pytest

from pipistrelle.platforms.failures.outage import Outage, Outages
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.server.engine.observers import Deferred, Observer, Reasons
from pipistrelle.server.errors import OutputFailed
from pipistrelle.server.outages.reliability import Reliability


def told(lines: list[str]) -> list[str]:
    """Return the lines without those that only repeat the number of free units."""
    kept, idle = [], ""
    for line in lines:
        if "settled" in line:
            if line.split()[-1] == idle:
                continue
            idle = line.split()[-1]
        kept.append(line)
    return kept


def test_later_is_the_same_story(play: Any, diary: Any) -> None:
    """Whenever it is flushed, the others get the same calls in the same order at the same times, except repetitions."""
    rows = [("1", 0, 1, 5, 5), ("2", 3, 2, 5, 4), ("3", 3, 9, 5, 4)]

    def story(observers: list[Observer], flush: Any) -> None:
        game = play(2, rows, observers=observers)
        game.begin()
        game.say(game.execute("1", "1"), game.metadata("1", "x"), game.kill("7"))
        flush()
        game.say()
        game.say(game.reject("3"), game.reject("3"))
        flush()
        game.say(game.execute("2", "0-1"))
        game.say()
        game.end()

    story([diary], lambda: None)
    once = told(diary.lines)
    diary.lines.clear()
    deferred = Deferred([diary])
    story([deferred], deferred.flush)
    flushed = told(diary.lines)
    diary.lines.clear()
    story([Deferred([diary])], lambda: None)

    assert once == flushed == told(diary.lines)
    assert len(once) > 15


def test_power_states_and_availability_are_passed_on() -> None:
    """These calls are deferred, too, in order with everything else, and only to observers that override them."""

    class Listener(Observer):
        def __init__(self) -> None:
            self.heard: list[tuple[Any, ...]] = []

        def switched(self, now: float, units: NodeSet, pstate: int) -> None:
            self.heard.append((now, str(units), pstate))

        def availability(self, now: float, units: NodeSet, available: bool) -> None:
            self.heard.append((now, str(units), available))

        def departed(self, now: float, units: NodeSet, on: bool) -> None:
            self.heard.append((now, str(units), "on" if on else "off"))

        def arrived(self, now: float, units: NodeSet, complete: bool) -> None:
            self.heard.append((now, str(units), "all" if complete else "some"))

        def settled(self, now: float, idle: int, down: int) -> None:
            self.heard.append((now, idle))

    listener = Listener()
    deferred = Deferred([listener, Observer()])
    assert deferred.listens("switched")
    assert deferred.listens("availability")
    assert not Deferred([Observer()]).listens("switched")
    deferred.departed(1.0, NodeSet.interval(0, 1), False)
    deferred.switched(1.0, NodeSet.interval(0, 3), -1)
    deferred.settled(1.0, 4, 0)
    deferred.arrived(1.5, NodeSet.interval(0, 0), False)
    deferred.availability(2.0, NodeSet.interval(2, 2), False)
    assert listener.heard == []
    deferred.flush()

    assert listener.heard == [
        (1.0, "0-1", "off"),
        (1.0, "0-3", -1),
        (1.0, 4),
        (1.5, "0", "some"),
        (2.0, "2", False),
    ]


def test_the_beginning_is_not_deferred(play: Any, diary: Any) -> None:
    """An output that cannot be opened is reported before anything has happened."""
    game = play(2, [("1", 0, 1, 5, 5)], observers=[Deferred([diary])])
    game.begin()

    assert diary.lines == ["0 begins 2"]


def test_observers_are_called_one_after_the_other(play: Any) -> None:
    """Each step reaches observers in their given order: one may read another's data, even at the end."""
    told: list[str] = []

    class Named(Observer):
        def __init__(self, name: str) -> None:
            self.name = name

        def begins(self, now: float, units: int) -> None:
            told.append(f"{self.name} begins")

        def submitted(self, now: float, job: Any) -> None:
            told.append(f"{self.name} submitted")

        def ends(self, now: float, reason: str, message: str) -> None:
            told.append(f"{self.name} ends")

    game = play(2, [("1", 0, 1, 5, 5)], observers=[Deferred([Named("b"), Named("a"), Named("c")])])
    game.begin()
    game.end()

    assert told == [f"{name} {what}" for what in ("begins", "submitted", "ends") for name in "bac"]


def test_every_observer_is_told_the_end_whoever_fails(play: Any, diary: Any) -> None:
    """An exception during flushing does not keep the others from closing; the first one is raised."""

    class Broken(Observer):
        def __init__(self, name: str) -> None:
            self.name = name

        def ends(self, now: float, reason: str, message: str) -> None:
            raise OutputFailed(self.name)

    class Clumsy(Broken):
        def submitted(self, now: float, job: Any) -> None:
            raise OutputFailed(f"{self.name} while telling")

    game = play(2, [("1", 0, 1, 5, 5)], observers=[Deferred([Clumsy("a"), Broken("b"), diary])])
    game.begin()
    with pytest.raises(OutputFailed, match="a while telling"):
        game.end()

    assert diary.lines[-1] == "0 ends completed"


def test_what_is_put_off_does_not_grow_without_end(play: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Years of failures that wake no scheduler reach the other observers on the way, in the same order."""

    class Failures(Observer):
        def __init__(self) -> None:
            self.lines: list[str] = []

        def went_down(self, now: float, nodes: NodeSet, units: NodeSet, planned: bool, why: Reasons) -> None:
            self.lines.append(f"{now:g} down {nodes}")

        def came_up(self, now: float, nodes: NodeSet, units: NodeSet) -> None:
            self.lines.append(f"{now:g} up {nodes}")

    monkeypatch.setattr("pipistrelle.server.engine.observers._MANY", 10)
    failures = Failures()
    outages = Outages.of(Outage(1, float(at), at + 1.0) for at in range(10, 110, 2))
    deferred = Deferred([failures])
    game = play(2, [("1", 0, 1, 200, 300)], observers=[deferred], reliability=Reliability(outages=outages))
    game.begin()
    game.say(game.execute("1", "0"))

    told_before = len(failures.lines)
    assert told_before > 60
    deferred.flush()
    assert failures.lines == [f"{at} {'up' if at % 2 else 'down'} 1" for at in range(10, 110)]

"""Lines that show a running simulation on a terminal of any size."""

from collections.abc import Sequence
from math import isfinite
from typing import Final, Literal

from rich.cells import cell_len
from rich.text import Text

from pipistrelle.cli.terminal.console import plain
from pipistrelle.cli.terminal.dates import Dates, clock_text
from pipistrelle.protocol.base.lengths import length_text
from pipistrelle.reports.live.layout import NOBODY, FittedMap, MapLayout
from pipistrelle.reports.live.state import LiveState, SeenDecision
from pipistrelle.server.setup.setup import Setup

#: abilities of a terminal: colours and Unicode, Unicode only, ASCII only
Abilities = Literal["colours", "letters", "ascii"]
#: colours of jobs, which every terminal with colours has
_COLOURS: Final = (
    *("blue", "yellow", "green", "magenta", "cyan", "bright_blue", "bright_yellow"),
    *("bright_green", "bright_magenta", "bright_cyan"),
)
#: shades of a cell by its used share: up to 1/3, up to 2/3, less than 1, 1
_SHADES: Final = "░▒▓█"
_FREE: Final = {"colours": "·", "letters": "·", "ascii": "."}
_DOWN: Final = "x"
_HOUR: Final = 3600
#: short formats of durations
_SHORT: Final = {"d": "{:,.1f} d", "h": "{:,.1f} h", "min": "{:,.1f} min", "s": "{:.0f} s"}
#: most lines of a part other than the map
_MOST: Final = 12
#: columns of a job's id
_ID: Final = 24
#: {decision in the protocol: text}
_VERBS: Final = {
    "EXECUTE_JOB": "start",
    "REJECT_JOB": "reject",
    "KILL_JOB": "kill",
    "PREEMPT_JOB": "preempt",
    "REGISTER_JOB": "register",
    "CALL_ME_LATER": "call later",
    "CANCEL_CALL": "cancel call",
    "SET_JOB_METADATA": "note",
    "STOP": "stop",
}


class Drawing:
    """A drawing of the state of a running simulation, as lines of text."""

    def __init__(self, setup: Setup, abilities: Abilities) -> None:
        self._setup = setup
        self._dates = Dates(setup.epoch, setup.timezone)
        self._abilities = abilities
        self._layout = MapLayout.of(setup.platform)
        #: size of the last view (columns, lines), and the map drawn for it
        self._room = (0, 0)
        self._fitted: FittedMap | None = None

    def lines(self, state: LiveState, width: int, height: int) -> list[Text]:
        """Return the state as at most ``height`` lines of at most ``width`` columns."""
        lines = self._head(state, width)
        left = height - len(lines)
        if left >= 4:
            waiting, decisions = self._waiting(state), self._decisions(state)
            few = max(0, min(_MOST, (left - 3) // 4))
            wanted = few + (1 if few else 0)
            machine = self._machine(state, width, max(1, left - 2 * wanted - 1))
            left -= len(machine)
            lines += machine
            for number, part in enumerate((waiting, decisions)):
                room = min(left if number else wanted, len(part))
                if room > 1:
                    lines += part[:room]
                    left -= room
        return [_fit(line, width) for line in lines[:height]]

    # -- parts ------------------------------------------------------------------------------------------------------

    def _head(self, state: LiveState, width: int) -> list[Text]:
        setup, machine = self._setup, self._setup.platform
        title = plain(f"{setup.name} on {machine.name}, {state.scheduler}", "bold")
        clock = plain(self._dates.at(state.now) or clock_text(state.now, None), "bold")
        pace = f"{_rate(state.speed)} simulated s/s, {_rate(state.notice_rate)} notices/s, {_wall(state.wall)} so far"
        if state.reason:
            pace = f"{state.reason}{': ' if state.message else ''}{state.message}"
        share = state.ended / state.jobs if state.jobs else 1.0
        jobs = f"{state.ended:,} of {state.jobs:,} jobs ended ({share:.1%}), {state.running:,} running"
        down = f", {state.down:,} down" if state.down else ""
        units = f"{state.machine.held:,} of {state.units:,} units held ({state.utilisation:.1%}){down}"
        if state.resources:
            shares = ", ".join(f"{one.name} {one.share:.1%}" for one in state.resources)
            units = f"held: {shares}; {state.machine.held:,} of {state.units:,} nodes with jobs{down}"
        queue = f"queue: {state.queue:,} jobs for {state.waiting_units:,} units, "
        queue += f"{_hours(state.backlog / state.units)} of work for the whole machine"
        bar = max(6, min(30, width // 5))
        return [
            _apart(title, clock, width),
            plain(pace),
            _joined(*self._bar(share, bar, "green"), plain(f" {jobs}")),
            _joined(*self._bar(state.utilisation, bar, "blue"), plain(f" {units}")),
            _joined(plain(queue), plain(f"; kept: {state.keeps[0]}" if state.keeps else "", "dim")),
        ]

    def _bar(self, share: float, width: int, colour: str) -> tuple[Text, Text]:
        done, rest = ("#", "-") if self._abilities == "ascii" else ("━", "─")
        full = round(min(max(share, 0.0), 1.0) * width)
        return plain(done * full, colour), plain(rest * (width - full), "dim")

    def _machine(self, state: LiveState, width: int, room: int) -> list[Text]:
        """Return the map of the nodes with its heading, in at most ``room`` lines."""
        if room < 2:
            return []
        if self._room != (width, room) or self._fitted is None:
            self._room, self._fitted = (width, room), FittedMap.of(self._layout, width, room - 1)
        fitted, machine = self._fitted, state.machine
        cells = fitted.cells(machine.on, machine.used, machine.down)
        glyphs = [
            self._cell(job, used, down, machine.colours)
            for job, used, down in zip(cells.job.tolist(), cells.used.tolist(), cells.down.tolist(), strict=True)
        ]
        each = f", a cell is {fitted.nodes_per_cell:,} nodes" if fitted.nodes_per_cell > 1 else ""
        free = _FREE[self._abilities]
        heading = plain(f"machine: {len(machine.on):,} nodes{each}; {free} free, {_DOWN} down", "dim")
        return [heading, *(self._row(row, glyphs) for row in fitted.grid.tolist())]

    def _cell(self, job: int, used: float, down: bool, colours: Sequence[int]) -> tuple[str, str]:
        """Return the character and the style that show a cell of the machine's map.

        ``job`` is the index of the cell's job in ``colours``, negative without a job. ``used`` is how much of
        the cell is used, 0 to 1.
        """
        if down:
            return _DOWN, "bold red"
        if job < 0:
            return _FREE[self._abilities], "dim"
        colour = colours[job]
        if self._abilities != "colours":
            letter = chr(ord("a") + colour % 26)
            return (letter.upper() if used >= 1.0 else letter), ""
        return _SHADES[min(3, int(used * 3)) if used < 1.0 else 3], _COLOURS[colour % len(_COLOURS)]

    def _row(self, row: Sequence[int], glyphs: Sequence[tuple[str, str]]) -> Text:
        text = Text(no_wrap=True)
        run, style = "", ""
        for cell in row:
            glyph, wanted = (" ", "") if cell == NOBODY else glyphs[cell]
            if wanted != style:
                text.append(run, style)
                run, style = "", wanted
            run += glyph
        text.append(run, style)
        return text

    def _waiting(self, state: LiveState) -> list[Text]:
        lines = [plain("waiting longest: job, units, for how long, asked for, user", "dim")]
        if not state.longest:
            return [*lines, plain("no job waits")]
        rows = [
            (job.id, f"{job.size:,}", _hours(state.now - job.since), _limit(job.walltime), job.user)
            for job in state.longest
        ]
        widths = [max(cell_len(row[column]) for row in rows) for column in range(4)]
        for job, size, age, walltime, user in rows:
            line = f"{size:>{widths[1]}}  {age:>{widths[2]}}  {walltime:>{widths[3]}}  {user}"
            lines.append(_joined(_cut(job, min(widths[0], _ID), pad=True), plain(f"  {line}")))
        return lines

    def _decisions(self, state: LiveState) -> list[Text]:
        lines = [plain("last decisions: when, what, units, why", "dim")]
        if not state.decisions:
            return [*lines, plain("none so far")]
        return [*lines, *map(self._decision, state.decisions)]

    def _decision(self, one: SeenDecision) -> Text:
        when = self._dates.at(one.time) or clock_text(one.time, None)
        size = "" if one.size is None else f" ({one.size:,})"
        said = plain(f"  refused: {one.refused}", "red") if one.refused else plain(f"  {one.why}")
        verb = plain(f"{_VERBS.get(one.what, one.what)} ")
        return _joined(plain(f"{when}  ", "dim"), verb, _cut(one.job, _ID), plain(size), said)


def _fit(line: Text, width: int) -> Text:
    """Return the line, cut to ``width`` columns."""
    line.truncate(width, overflow="ellipsis" if width > 1 else "crop")
    return line


def _joined(*parts: Text) -> Text:
    """Join several texts into one; each keeps its style."""
    found = Text(no_wrap=True)
    for part in parts:
        found.append_text(part)
    return found


def _apart(left: Text, right: Text, width: int) -> Text:
    """Return a line with one text at its left end and one at its right end.

    The left text is cut if the line is too short for both.
    """
    room = width - right.cell_len - 2
    if room < 8:
        return _joined(right, plain("  "), left)
    left.truncate(room, overflow="ellipsis")
    return _joined(left, plain(" " * (width - left.cell_len - right.cell_len)), right)


def _cut(text: str, width: int, *, pad: bool = False) -> Text:
    found = plain(text)
    found.truncate(width, overflow="ellipsis", pad=pad)
    return found


def _rate(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _wall(seconds: float) -> str:
    return f"{int(seconds) // _HOUR}:{int(seconds) // 60 % 60:02d}:{int(seconds) % 60:02d}"


def _limit(walltime: float | None) -> str:
    return "no limit" if walltime is None else _hours(walltime)


def _hours(seconds: float) -> str:
    return length_text(seconds, _SHORT) if isfinite(seconds) else "?"

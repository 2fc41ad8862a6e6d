"""The live progress bar in a terminal."""

from io import StringIO

from rich.console import Console

from pipistrelle.cli.terminal.progress import ProgressBar


def test_the_bar_is_one_line_of_an_80_column_terminal() -> None:
    """Also for a large log: only the bar itself becomes shorter."""
    drawn = StringIO()
    bar = ProgressBar(312_826, 1_296_514_800.0, Console(file=drawn, width=80, force_terminal=True))
    bar._queue, bar._done, bar._events = 12_345, 212_826, 1_234_567
    bar.begins(0.0, 93_312)
    bar._draw(1_000_000.0)

    assert "212,826/312,826 jobs queue 12,345" in drawn.getvalue()
    assert "events/s" in drawn.getvalue()
    assert "\n" not in drawn.getvalue()
    bar.ends(1_000_000.0, "completed", "")

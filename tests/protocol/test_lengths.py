"""Lengths of time as users read them."""

import pytest

from pipistrelle.protocol.base.lengths import length_text, two_units_text


@pytest.mark.parametrize(
    ("seconds", "text", "in_two_units"),
    [
        (0.0, "0 s", "0 s"),
        (59.94, "59.9 s", "59.9 s"),
        (60.0, "1 min", "1 min"),
        (3661.0, "1.02 h", "1 h 1 min"),
        (86400.0, "1 d", "1 d"),
        (200_000.0, "2.31 d", "2 d 7 h"),
        (31_557_600.0, "1 y", "365 d 6 h"),
    ],
)
def test_a_length_of_time_is_printed_in_large_units(seconds: float, text: str, in_two_units: str) -> None:
    """A number has three digits in the largest unit it reaches; in two units, both numbers are whole."""
    assert length_text(seconds) == text
    assert two_units_text(seconds) == in_two_units


def test_a_caller_chooses_units_and_digits() -> None:
    """The last form is used for everything shorter than its unit."""
    forms = {"d": "{:.1f} days", "h": "{:.0f} hours"}

    assert [length_text(seconds, forms) for seconds in (129_600.0, 7200.0, 0.0)] == ["1.5 days", "2 hours", "0 hours"]

"""Tolerances of a case.

They say how far metrics of the run may be from their golden values. A case with tolerances checks only these metrics,
not every decision. So the scheduler's decisions may differ as long as the metrics stay within their tolerances.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from pipistrelle.protocol.base.errors import PipistrelleError, did_you_mean, printable, shown
from pipistrelle.protocol.base.lengths import seconds_of

_FORM: Final = re.compile(r"\s*(±|\+-|\+/-|\+|-)?\s*([0-9.].*?)\s*(%?)\s*")
_EXPECTED: Final = "such as '+3%' (at most 3 % more), '-3%', '±3%', or '±0.01', '+1min' without '%'"
#: relative rounding that counts as no change
_SAME: Final = 1e-9


class CaseError(PipistrelleError):
    """A case or its golden results cannot be used."""


class AllowedChange(Struct, frozen=True):
    """The allowed change of a metric from its golden value.

    Attributes:
        text: the tolerance as written in the case.
        less, more: largest decrease and increase, as shares of the golden value or in its unit; None: no limit.
        relative: whether ``less`` and ``more`` are shares.
    """

    text: str
    less: float | None
    more: float | None
    relative: bool

    @classmethod
    def parse(cls, value: Any, where: str) -> "AllowedChange":
        """Parse a tolerance: ``3%``, ``0.01`` or ``1min``, with or without a sign.

        ``+`` limits only an increase, ``-`` only a decrease; ``±`` or no sign limits both.

        Raise CaseError if malformed.
        """
        text = value if isinstance(value, str) else repr(value)
        match = None if isinstance(value, bool) else _FORM.fullmatch(text)
        try:
            size = -1.0 if match is None else float(match[2]) if match[3] else seconds_of(match[2])
        except ValueError:
            size = -1.0
        if match is None or not 0 <= size < float("inf"):
            raise CaseError("a tolerance cannot be read", where=where, expected=_EXPECTED, found=shown(value))
        size = size / 100 if match[3] else size
        sign = match[1]
        less, more = None if sign == "+" else size, None if sign == "-" else size
        return cls(printable(text.strip()), less, more, bool(match[3]))

    def holds(self, golden: float, now: float) -> bool:
        """Return whether the value ``now`` of a metric is within the tolerance.

        The tolerance is around the metric's golden value.
        """
        scale = abs(golden) if self.relative else 1.0
        slack = _SAME * max(abs(golden), abs(now))
        change = now - golden
        low = self.less is None or change >= -self.less * scale - slack
        return low and (self.more is None or change <= self.more * scale + slack)


class ToleratedFigure(Struct, frozen=True):
    """A metric of a case, with its tolerance.

    Attributes:
        golden: the stored value; None: the golden results do not have the metric.
        now: the value in the run; None: the run does not have the metric.
    """

    name: str
    golden: float | None
    now: float | None
    tolerance: AllowedChange

    @property
    def holds(self) -> bool:
        """Return whether the run's value is within the tolerance of the golden value.

        Two missing values are equal.
        """
        if self.golden is None or self.now is None:
            return self.golden is self.now
        return self.tolerance.holds(self.golden, self.now)

    def __str__(self) -> str:
        values = f"{self.name}: golden {_text(self.golden)}, now {_text(self.now)}"
        if self.golden is not None and self.now is not None:
            change = self.now - self.golden
            share = f" ({change / abs(self.golden):+.2%})" if self.golden else ""
            values += f", {change:+.6g}{share}"
        return f"{values}: {'within' if self.holds else 'beyond'} {self.tolerance.text}"


def tolerated_figures(
    tolerances: Mapping[str, AllowedChange], golden: Mapping[str, Any], now: Mapping[str, Any], where: str
) -> list[ToleratedFigure]:
    """Return the metrics for which a case has a tolerance, in the order of the case.

    Args:
        tolerances: by metric; ``reliability.availability`` is the key ``availability`` in the table ``reliability``.
        golden, now: contents of ``out_summary.json`` of the golden results and of the run.
        where: the case, for errors.

    Raises:
        CaseError: a metric is unknown or not a number.
    """
    kept, told = dict(_numbers(golden)), dict(_numbers(now))
    found = []
    for name, tolerance in tolerances.items():
        if name not in kept and name not in told:
            raise CaseError(
                f"the summary has no number '{printable(name)}'",
                where=f"{where}: tolerances",
                expected="a number in out_summary.json, such as mean_wait or 'reliability.availability'",
                hint=did_you_mean(name, sorted({*kept, *told})),
            )
        found.append(ToleratedFigure(name, kept.get(name), told.get(name), tolerance))
    return found


def _numbers(summary: Mapping[str, Any], prefix: str = "") -> list[tuple[str, float | None]]:
    """Return (name, number) of each metric of a summary.

    Metrics in its tables are included.
    """
    found: list[tuple[str, float | None]] = []
    for name, value in summary.items():
        if isinstance(value, dict):
            found += _numbers(value, f"{prefix}{name}.")
        elif value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
            found.append((f"{prefix}{name}", value))
    return found


def _text(value: float | None) -> str:
    return "none" if value is None else f"{value:.10g}"

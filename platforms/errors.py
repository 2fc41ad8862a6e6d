"""The errors of platforms and outages, and a check of ranges."""

from pipistrelle.protocol.base.errors import PipistrelleError


class PlatformError(PipistrelleError):
    """A machine is described wrongly, or a named machine or pool does not exist."""


class OutageError(PlatformError):
    """An outage, a failure model or a length of time is invalid."""


def check_range(
    what: str,
    value: float,
    least: float,
    most: float,
    kind: type[PlatformError] = OutageError,
    *,
    above: bool = False,
    unit: str = " s",
    where: str | None = None,
) -> None:
    """Raise an error of class `kind` unless `value` is from `least` to `most`.

    Args:
        above: whether `least` itself is also out of range.
        unit: the unit that follows the numbers in the message.
    """
    if least <= value <= most and not (above and value == least):
        return
    rule = f"above {least:g}, at most {most:g}{unit}" if above else f"{least:g} to {most:g}{unit}"
    raise kind(f"{what} is out of range", where=where, expected=rule, found=f"{value!r}{unit}")

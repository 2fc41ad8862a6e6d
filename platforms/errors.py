"""The errors of this layer."""

from pipistrelle.protocol.base.errors import PipistrelleError


class PlatformError(PipistrelleError):
    """A machine's description is wrong, or a machine or pool is asked for that does not exist."""


class OutageError(PlatformError):
    """Outages, a failure model, a repair time or another length of time make no sense."""


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
    """Check that a number is from `least` to `most`, or above `least` if `above` says so; NaN never is.

    Raises
    ------
    PlatformError
        of this `kind` otherwise: `what` is out of range. `unit` is what follows its numbers there.
    """
    if least <= value <= most and not (above and value == least):
        return
    rule = f"above {least:g}, at most {most:g}{unit}" if above else f"{least:g} to {most:g}{unit}"
    raise kind(f"{what} is out of range", where=where, expected=rule, found=f"{value!r}{unit}")

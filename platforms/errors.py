"""The errors of this layer, and how a value of a file is shown in it."""

from pipistrelle.protocol.base.errors import PipistrelleError

_SHOWN = 60  # characters: a message stays one line, whatever the file holds


class PlatformError(PipistrelleError):
    """A machine's description is wrong, or a machine or pool is asked for that does not exist."""


class OutageError(PlatformError):
    """Outages, a failure model, a repair time or another length of time make no sense."""


def shown(value: object) -> str:
    """Return a value of a TOML file for a message: as TOML would write it, on one line, cut if it is long."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "an array"
    if isinstance(value, int):
        # Python refuses to write out integers of thousands of digits.
        return str(value) if value.bit_length() < 128 else f"a number of about {value.bit_length() * 3 // 10} digits"
    if isinstance(value, float):
        return repr(value)
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."

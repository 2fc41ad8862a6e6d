"""The errors of this layer."""

from pipistrelle.protocol.base.errors import PipistrelleError


class PlatformError(PipistrelleError):
    """A machine's description is wrong, or a machine or pool is asked for that does not exist."""


class OutageError(PlatformError):
    """Outages, a failure model, a repair time or another length of time make no sense."""

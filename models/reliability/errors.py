"""The error of this room."""

from pipistrelle.platforms.errors import PlatformError


class ReliabilityError(PlatformError):
    """A question about reliability has no answer: classes, a machine or a number in it cannot be."""

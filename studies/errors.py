"""The error of studies."""

from pipistrelle.protocol.base.errors import PipistrelleError


class StudyError(PipistrelleError):
    """A study's description is wrong, or the study cannot be run."""

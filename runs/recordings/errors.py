"""The error of a recording that cannot be used."""

from pipistrelle.protocol.base.errors import InputError


class RecordingError(InputError):
    """A folder is not a recording of slurmctld, or one of its files is missing or damaged."""

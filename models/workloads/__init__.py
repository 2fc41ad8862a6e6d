"""Describe, summarise and select workloads."""

from typing import Final

#: fields by which jobs can be selected
FIELDS: Final = ("user", "group", "account", "queue", "qos", "partition", "application", "status", "state")

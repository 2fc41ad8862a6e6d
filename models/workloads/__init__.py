"""Looking at workloads and choosing from them."""

from typing import Final

#: fields that jobs can be chosen by: columns of numbers, or names that the log has
FIELDS: Final = ("user", "group", "account", "queue", "qos", "partition", "application", "status", "state")

"""What sizes count in a centre's log that has both."""

from typing import Literal

Units = Literal["nodes", "processors"]

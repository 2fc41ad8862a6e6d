"""The library of failure models fitted to real logs; the logs are not included."""

from collections.abc import Callable
from typing import Final

from pipistrelle.platforms.catalogue import Catalogue
from pipistrelle.platforms.errors import OutageError
from pipistrelle.platforms.failures.fitted import FittedModel, parse_model
from pipistrelle.platforms.failures.text import FailureSpec


def model_line(model: FittedModel) -> str:
    """Describe a fitted failure model in one line."""
    days = model.spec().uptime.mean / 86400
    kind = model.failures.distribution
    return f"{model.description} ({kind}, MTBF of a node {days:,.0f} days, {model.nodes:,} nodes)"


_MODELS: Final = Catalogue("pipistrelle.platforms.failures", "failure model", parse_model, OutageError, model_line)
names: Final = _MODELS.names
get: Final = _MODELS.get
describe: Final = _MODELS.describe


def specs() -> dict[str, Callable[[], FailureSpec]]:
    """Return {name of a failure model: function that returns its spec}.

    Pass the result to `parse_failures` as the argument ``library``.
    """

    def opener(name: str) -> Callable[[], FailureSpec]:
        return lambda: get(name).spec()

    return {name: opener(name) for name in names()}

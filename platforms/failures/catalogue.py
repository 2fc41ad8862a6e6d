"""The failure models that come with the package, by name: fitted from real logs, which do not come with it."""

from collections.abc import Callable
from importlib.resources import files

from pipistrelle.platforms.errors import OutageError
from pipistrelle.platforms.failures.fitted import FittedModel, parse_model
from pipistrelle.platforms.failures.text import FailureSpec
from pipistrelle.protocol.base.errors import did_you_mean, shown

_FOLDER = "library"
_SUFFIX = ".toml"


def names() -> tuple[str, ...]:
    """Return the names of the models in the library, in alphabetical order."""
    entries = (files("pipistrelle.platforms.failures") / _FOLDER).iterdir()
    return tuple(sorted(entry.name.removesuffix(_SUFFIX) for entry in entries if entry.name.endswith(_SUFFIX)))


def get(name: str) -> FittedModel:
    """Return the model called `name`.

    Raises
    ------
    OutageError
        if the library has none of that name.
    """
    known = names()
    if name not in known:
        raise OutageError(f"the library has no failure model {shown(name)}", hint=did_you_mean(name, list(known)))
    file = files("pipistrelle.platforms.failures") / _FOLDER / f"{name}{_SUFFIX}"
    return parse_model(file.read_text(encoding="utf-8"), file.name)


def describe(name: str) -> str:
    """Return one line on a model: what it is, a node's mean time between failures, the size of its machine.

    Raises
    ------
    OutageError
        if the library has none of that name.
    """
    model = get(name)
    days = model.spec().uptime.mean / 86400
    kind = model.failures.distribution
    return f"{model.description} ({kind}, MTBF of a node {days:,.0f} days, {model.nodes:,} nodes)"


def specs() -> dict[str, Callable[[], FailureSpec]]:
    """Return {name: function that gives its spec}, as `parse_failures` wants it."""

    def opener(name: str) -> Callable[[], FailureSpec]:
        return lambda: get(name).spec()

    return {name: opener(name) for name in names()}

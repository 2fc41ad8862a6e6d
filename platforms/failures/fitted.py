"""Failure models in TOML: ``failures fit`` writes them, ``--failures`` reads them."""

from typing import Final, Literal

import msgspec

from pipistrelle.platforms.errors import OutageError
from pipistrelle.platforms.failures.durations import Durations, Exponential, Lognormal, Weibull
from pipistrelle.platforms.failures.text import FailureSpec
from pipistrelle.protocol.base.errors import shown
from pipistrelle.protocol.base.toml import read_toml, toml_value

Interval = tuple[float, float]
_MANUAL: Final = "'pipistrelle help outages' lists every key."
_NEEDED: Final = {"exponential": ("mean",), "weibull": ("scale", "shape"), "lognormal": ("median", "sigma")}


class Fitted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A distribution of times to failure or repair, fitted to a log.

    Args:
        distribution: exponential needs the mean, weibull scale and shape, lognormal median and sigma.
        mean, scale, median: seconds.
        shape, sigma: numbers without a unit.
        mean_interval, ...: the confidence interval (low, high) of each parameter.
        age: how long a node has been up at time 0 (s).
        observations: the number of times whose end was observed.
        censored: the number of times that had not ended when observation ended.
        exposure: the sum of all observed times (s).
        log_likelihood: the log likelihood of the times (s) at the fitted parameters.
    """

    distribution: Literal["exponential", "weibull", "lognormal"]
    mean: float | None = None
    mean_interval: Interval | None = None
    scale: float | None = None
    scale_interval: Interval | None = None
    shape: float | None = None
    shape_interval: Interval | None = None
    median: float | None = None
    median_interval: Interval | None = None
    sigma: float | None = None
    sigma_interval: Interval | None = None
    age: float = 0.0
    observations: int | None = None
    censored: int | None = None
    exposure: float | None = None
    log_likelihood: float | None = None

    def durations(self) -> Durations:
        """Return the fitted distribution.

        Raise OutageError if a parameter is missing or out of range.
        """
        values = []
        for key in _NEEDED[self.distribution]:
            value = getattr(self, key)
            if value is None:
                raise OutageError(f"the key '{key}' is missing", expected=f"{key} of the {self.distribution} model")
            values.append(float(value))
        if self.distribution == "exponential":
            return Exponential(values[0])
        return Weibull(*values) if self.distribution == "weibull" else Lognormal(*values)


class FittedModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Failures and repairs of a machine's nodes, fitted to a log.

    Args:
        description: one line.
        source: the log, and which part of it.
        nodes: the number of nodes of the machine.
        confidence: the level of all confidence intervals, such as 0.95.
        failures: how long a node stays up until it fails.
        repair: how long the node is then down; None: the log does not say.
    """

    name: str
    description: str = ""
    source: str = ""
    nodes: int
    confidence: float = 0.95
    failures: Fitted
    repair: Fitted | None = None

    def spec(self) -> FailureSpec:
        """Return the model in the form that `parse_failures` returns.

        Raise OutageError if a parameter is missing or out of range.
        """
        return FailureSpec(
            uptime=self.failures.durations(),
            age=self.failures.age,
            repair=self.repair.durations() if self.repair else None,
        )


def parse_model(text: str, where: str) -> FittedModel:
    """Parse a fitted failure model from TOML; `where` names the text in messages.

    Raises:
        OutageError: if the text is not TOML, or a key or value is invalid.
    """
    raw = read_toml(text, where, OutageError, manual=_MANUAL, hint=_MANUAL)
    try:
        model = msgspec.convert(raw, FittedModel)
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at ")
        raise OutageError(
            "this is not a failure model",
            where=where + (f": {place.strip('`').removeprefix('$.')}" if place else ""),
            found=what[:1].lower() + what[1:],
            hint=_MANUAL,
        ) from None
    try:
        model.spec()
    except OutageError as error:
        raise error.at(where, OutageError) from None
    if model.nodes < 1:
        raise OutageError(
            "a count is too small", where=f"{where}: nodes", expected="at least 1", found=shown(model.nodes)
        )
    return model


def to_toml(model: FittedModel) -> str:
    """Return the fitted failure model as TOML; the inverse of `parse_model`."""
    heads = ("name", "description", "source", "nodes", "confidence")
    lines = [f"{key} = {toml_value(getattr(model, key))}" for key in heads]
    for table in ("failures", "repair"):
        fitted = getattr(model, table)
        if fitted is not None:
            lines += ["", f"[{table}]"]
            values = msgspec.structs.asdict(fitted)
            lines += [f"{key} = {toml_value(value)}" for key, value in values.items() if _kept(key, value)]
    return "\n".join(lines) + "\n"


def _kept(key: str, value: object) -> bool:
    return value is not None and (key != "age" or value != 0.0)

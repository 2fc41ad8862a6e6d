"""Parse failures and repair times: ``weibull,mtbf=10250h,shape=0.7``, ``5d``."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, cast

from pipistrelle.platforms.description import Platform
from pipistrelle.platforms.errors import OutageError, PlatformError, check_range
from pipistrelle.platforms.failures.domains import blocks
from pipistrelle.platforms.failures.durations import Durations, Exponential, Fixed, Lognormal, Weibull
from pipistrelle.platforms.failures.models import FailureModel, Scope
from pipistrelle.platforms.failures.outage import FAILURE
from pipistrelle.platforms.failures.plan import Source
from pipistrelle.protocol.base.errors import PipistrelleError, did_you_mean, shown
from pipistrelle.protocol.base.lengths import QUANTITY, parse_seconds

_MANUAL: Final = "'pipistrelle help outages' describes the language."
_PARAMETERS: Final = {
    "fixed": ("mean",),
    "exponential": ("mean",),
    "weibull": ("mean", "scale", "shape"),
    "lognormal": ("mean", "median", "sigma"),
}
#: {other name of the mean: what it is the mean of}
_MEANS: Final = {"mtbf": "failures", "smtbf": "failures", "mttr": "repair"}
_RANGE: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)
_OPTIONS: Final = ("of", "factor", "scope", "age", "pool", "nodes", "domain", "cause")


@dataclass(frozen=True, slots=True)
class FailureSpec:
    """A description of failures that is not yet bound to a machine.

    Args:
        uptime: the time between failures of a node, or of a whole system if `system` is true.
        system: whether the mean was given as SMTBF, the mean time between failures of a whole system.
        of: the number of nodes to which the SMTBF refers; None: all nodes (or domains) that fail.
        factor: the reliability factor: failures are this many times as frequent.
        scope, age: see `FailureModel`.
        pool: the pool whose nodes fail; None: all nodes.
        nodes: numbers (first, last) of the nodes that fail, instead of a pool.
        domain: (name, number of nodes) of the failure domains that fail instead of nodes; None: nodes fail.
        cause: the cause of the outages.
        repair: the repair time of a library model, if it has one.
    """

    uptime: Durations
    system: bool = False
    of: int | None = None
    factor: float = 1.0
    scope: Scope = "node"
    age: float = 0.0
    pool: str | None = None
    nodes: tuple[int, int] | None = None
    domain: tuple[str, int] | None = None
    cause: str = FAILURE
    repair: Durations | None = None

    def source(self, platform: Platform, repair: Durations | None, factor: float = 1.0) -> Source:
        """Return the failure model for a machine, with the nodes or domains that fail.

        Args:
            repair: how long repairs take; None: as in the library model.
            factor: a reliability factor, multiplied by the spec's factor.

        Raises:
            OutageError: if no repair time is given, the pool does not exist, or a value is out of range.
        """
        repair = repair or self.repair
        if repair is None:
            raise OutageError(
                "the repair time is missing",
                expected="'5d', 'exponential,mttr=1h' or another distribution",
                hint=f"Give --repair. {_MANUAL}",
            )
        nodes = _nodes(platform, self.pool, self.nodes)
        domains = blocks(nodes, self.domain[1], self.domain[0]) if self.domain else ()
        count = len(domains) or len(nodes)
        stretch = float(self.of or count) if self.system else 1.0  # from SMTBF to MTBF
        if self.scope == "system":
            stretch /= count
        scaled = self.uptime.scaled(stretch / (_factor(factor) * self.factor))
        model = FailureModel(scaled, repair, scope=self.scope, cause=self.cause, age=self.age)
        return Source(model, nodes, domains)


def parse_durations(text: str, where: str = "--repair", what: str = "repair time") -> Durations:
    """Parse a distribution of times.

    Examples are ``5d`` and ``lognormal,median=1h,sigma=1.2``.

    Args:
        where: the text's name in messages.
        what: what the distribution describes, in messages.

    Raises:
        OutageError: if the text is not a distribution, or a value is out of range.
    """
    try:
        if QUANTITY.fullmatch(text.strip()):
            return Fixed(parse_seconds(text, what))
        name, parameters = _split(text, list(_PARAMETERS), what)
        _check_keys(parameters, [*_PARAMETERS[name], "mttr"], name)
        return _distribution(name, parameters, "mttr")
    except PipistrelleError as error:
        raise _placed(error, where) from None


def parse_failures(
    text: str, library: Mapping[str, Callable[[], FailureSpec]] | None = None, where: str = "--failures"
) -> FailureSpec:
    """Parse a failure model: ``exponential,smtbf=24h,of=20000``, ``lanl-20``.

    Args:
        text: a distribution or the name of a library model, with parameters.
        library: {name: function that returns the model's spec}; None: no library.
        where: the text's name in messages.

    Raises:
        OutageError: if a name or parameter is unknown, missing or out of range.
    """
    try:
        return _failures(text, library or {})
    except PipistrelleError as error:
        raise _placed(error, where) from None


def _failures(text: str, library: Mapping[str, Callable[[], FailureSpec]]) -> FailureSpec:
    distributions = [name for name in _PARAMETERS if name != "fixed"]
    name, parameters = _split(text, [*distributions, *library], "failure model")
    if name in library:
        spec = library[name]()
        _check_keys(parameters, list(_OPTIONS), name)
        if "of" in parameters:
            raise OutageError("the key 'of' goes with smtbf only", found=f"'of' with the model '{name}'")
    else:
        _check_keys(parameters, [*_PARAMETERS[name], "mtbf", "smtbf", *_OPTIONS], name)
        system = "smtbf" in parameters
        if "of" in parameters and not system:
            raise OutageError("the key 'of' goes with smtbf only", hint=_MANUAL)
        given = {key: value for key, value in parameters.items() if key not in _OPTIONS}
        spec = FailureSpec(uptime=_distribution(name, given, "smtbf" if system else "mtbf"), system=system)
        if "of" in parameters:
            spec = replace(spec, of=_count(parameters["of"], "of"))
    return _with_options(spec, parameters)


def _with_options(spec: FailureSpec, parameters: dict[str, str]) -> FailureSpec:
    if "factor" in parameters:
        spec = replace(spec, factor=_factor(_number(parameters["factor"], "factor")))
    if (scope := parameters.get("scope")) is not None:
        if scope not in ("node", "system"):
            raise OutageError("a scope is unknown", expected="'node' or 'system'", found=shown(scope))
        # The age in a library's model is that of nodes, so it does not apply to a system.
        spec = replace(spec, scope=cast(Scope, scope), age=0.0 if scope == "system" else spec.age)
    if "age" in parameters:
        spec = replace(spec, age=parse_seconds(parameters["age"], "age", or_zero=True))
    if "domain" in parameters:
        label, colon, size = parameters["domain"].rpartition(":")
        if not (label if colon else size):
            raise OutageError("a failure domain has no name", expected="NAME:NODES, as cabinet:96")
        spec = replace(spec, domain=(label or "domain", _count(size, "domain")))
    if "nodes" in parameters:
        if "pool" in parameters:
            raise OutageError("the keys 'pool' and 'nodes' both say which nodes fail", expected="one of them")
        found = _RANGE.fullmatch(parameters["nodes"])
        if found is None or int(found[1]) > int(found[2] or found[1]):
            raise OutageError("nodes cannot be read", expected="as '8-15' or '7'", found=shown(parameters["nodes"]))
        spec = replace(spec, nodes=(int(found[1]), int(found[2] or found[1])))
    return replace(spec, pool=parameters.get("pool", spec.pool), cause=parameters.get("cause", spec.cause))


def _split(text: str, names: list[str], what: str) -> tuple[str, dict[str, str]]:
    name, *rest = (part.strip() for part in text.split(","))
    if name not in names and name.endswith(".toml"):
        raise OutageError(f"there is no file {shown(name)}", expected=f"a {what}, or a file of one", hint=_MANUAL)
    if name not in names:
        raise OutageError(f"there is no {what} {shown(name)}", hint=f"{did_you_mean(name, names)} {_MANUAL}")
    parameters: dict[str, str] = {}
    for part in rest:
        key, equals, value = (word.strip() for word in part.partition("="))
        if not equals or not key or not value:
            raise OutageError("a parameter cannot be read", expected="KEY=VALUE", found=shown(part), hint=_MANUAL)
        if key in parameters:
            raise OutageError(f"the parameter '{key}' is given twice", found=shown(text))
        parameters[key] = value
    return name, parameters


def _check_keys(parameters: dict[str, str], known: list[str], name: str) -> None:
    for key in parameters:
        if key not in known:
            raise OutageError(f"'{name}' has no parameter {shown(key)}", hint=did_you_mean(key, known))


def _distribution(name: str, parameters: dict[str, str], mean_key: str) -> Durations:
    keys = [key for key in (mean_key, "mean", "scale", "median") if key in parameters]
    if len([*keys, *(key for key in _MEANS if key in parameters and key != mean_key)]) != 1:
        other = {"weibull": " or scale", "lognormal": " or median"}.get(name, "")
        raise OutageError(
            f"'{name}' needs one length of time",
            expected=f"{mean_key}{other}" if mean_key == "mttr" else f"mtbf{other}, or smtbf",
            found=", ".join(sorted({*keys, *(key for key in _MEANS if key in parameters)})) or "none",
        )
    key = keys[0]
    seconds = parse_seconds(parameters[key], f"value of '{key}'")
    if name == "weibull":
        shape = _number(_needed(parameters, "shape", name), "shape")
        return Weibull(seconds, shape) if key == "scale" else Weibull.of_mean(seconds, shape)
    if name == "lognormal":
        sigma = _number(_needed(parameters, "sigma", name), "sigma")
        return Lognormal(seconds, sigma) if key == "median" else Lognormal.of_mean(seconds, sigma)
    return Fixed(seconds) if name == "fixed" else Exponential(seconds)


def _needed(parameters: dict[str, str], key: str, name: str) -> str:
    if key not in parameters:
        raise OutageError(f"'{name}' needs the parameter '{key}'", expected=f"{key}=NUMBER", hint=_MANUAL)
    return parameters[key]


def _number(text: str, key: str) -> float:
    found = QUANTITY.fullmatch(text)
    if found is None or found[2]:
        raise OutageError(f"the parameter '{key}' is no number", found=shown(text))
    return float(found[1])


def _count(text: str, key: str) -> int:
    if re.fullmatch("[0-9]{1,9}", text) is None or int(text) < 1:
        raise OutageError(
            f"the parameter '{key}' is no number of nodes", expected="a whole number of at least 1", found=shown(text)
        )
    return int(text)


def _factor(factor: float) -> float:
    check_range("a reliability factor", factor, 0, 1e9, above=True, unit="")
    return factor


def _nodes(platform: Platform, pool: str | None, numbers: tuple[int, int] | None) -> range:
    if pool is not None:
        try:
            nodes = platform.pool_nodes(pool)
        except PlatformError as error:
            raise error.at(None, OutageError) from None
        return range(nodes.first, nodes.last + 1)
    first, last = numbers or (0, platform.nodes - 1)
    if last >= platform.nodes:
        raise OutageError(
            "a failure model names nodes that the machine does not have",
            expected=f"nodes 0 to {platform.nodes - 1}",
            found=f"{first}-{last}",
        )
    return range(first, last + 1)


def _placed(error: PipistrelleError, where: str) -> OutageError:
    """Return `error` as an OutageError whose location begins with `where`.

    `where` is the name of the parsed text.
    """
    return error.at(where if error.where is None else f"{where} {error.where}", OutageError)

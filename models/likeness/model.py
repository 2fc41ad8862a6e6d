"""A statistical model of a log: numbers from which similar jobs are drawn.

It contains no job of the log.
"""

import math
from itertools import accumulate
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from pipistrelle.platforms.catalogue import Catalogue
from pipistrelle.platforms.errors import PlatformError
from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.protocol.base.lengths import parse_seconds
from pipistrelle.protocol.base.shapes import convert_table
from pipistrelle.protocol.base.toml import read_toml, toml_value
from pipistrelle.traces.files import text_if_file

_MANUAL: Final = "'pipistrelle help workload-models' lists every key."
_WEEK: Final = 168
_MOST: Final = 2.0**53
#: most jobs of a generated workload
MOST_JOBS: Final = 10_000_000

Weight = Annotated[int, Meta(ge=0, le=10**12)]
#: (from, to, weight): values are uniform between both bounds; equal bounds are a single value
Piece = tuple[float, float, Weight]
Pieces = Annotated[tuple[Piece, ...], Meta(min_length=1, max_length=10_000)]


class ModelError(PlatformError):
    """A workload model is invalid or cannot be fitted, or must draw too many jobs."""


class ModelClass(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Jobs of similar size in a workload model.

    Args:
        weight: number of jobs relative to other classes.
        sizes, runtimes: distributions of units per job and of run times (s).
        campaigns: distribution of the number of jobs that a user submits in a row.
        users: pairs (number of the user, from 1; weight of the user). Empty: users are unknown.
    """

    weight: Weight
    sizes: Pieces
    campaigns: Pieces
    runtimes: Pieces
    users: tuple[tuple[Annotated[int, Meta(ge=1, le=10**9)], Weight], ...] = ()

    @property
    def serial(self) -> bool:
        """Return whether the jobs of this class need only one unit."""
        return all(high <= 1 for _, high, _ in self.sizes)


class GapBand(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The gaps between jobs of one campaign, for campaigns of similar length.

    Args:
        below: upper bound of the number of jobs in a campaign, exclusive; inf for the last band. The lower bound is the
            upper bound of the previous band.
        seconds: gaps between successive jobs (s).
    """

    below: Annotated[float, Meta(gt=0)]
    seconds: Pieces


class RequestBand(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The share of the requested time that jobs of similar run time use.

    Args:
        below: upper bound of the run times in this band (s), exclusive; inf for the last band. The lower bound is the
            upper bound of the previous band.
        used: run time divided by requested time.
    """

    below: Annotated[float, Meta(gt=0)]
    used: Pieces


class WorkloadModel(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model of a log.

    Users submit campaigns: jobs of one size in quick succession. Campaigns begin by a Poisson process with a weekly
    cycle.

    Args:
        name, description, source: the model's name, one line about it, and the log it was fitted to.
        jobs, duration: number of jobs, and how long they are submitted, such as "30d".
        hours: 168 weights of the hours of a week from Monday 0:00, for the start of campaigns.
        gaps: gaps within campaigns, by ascending length of campaigns.
        repeat: probability that the next job of a campaign repeats run time and request.
        requests: shares of the requested time that jobs use, by ascending run time; empty: jobs request no time.
        rounds: common requested times (s), ascending.
        rounded: share of requested times that are in `rounds`.
        longest: longest requested time (s); 0: no bound.
    """

    name: str
    machine_size: Annotated[int, Meta(ge=1, le=10_000_000)]
    jobs: Annotated[int, Meta(ge=1, le=MOST_JOBS)]
    duration: str
    hours: Annotated[tuple[Weight, ...], Meta(min_length=_WEEK, max_length=_WEEK)]
    gaps: Annotated[tuple[GapBand, ...], Meta(min_length=1)]
    classes: Annotated[tuple[ModelClass, ...], Meta(min_length=1)]
    repeat: Annotated[float, Meta(ge=0, le=1)] = 0.0
    requests: tuple[RequestBand, ...] = ()
    rounds: tuple[Annotated[float, Meta(gt=0, le=_MOST)], ...] = ()
    rounded: Annotated[float, Meta(ge=0, le=1)] = 0.0
    longest: Annotated[float, Meta(ge=0, le=_MOST)] = 0.0
    description: str = ""
    source: str = ""

    @property
    def seconds(self) -> float:
        """Return the length of the time in which jobs are submitted (s)."""
        return parse_seconds(self.duration, "duration")

    @property
    def area(self) -> float:
        """Return the mean unit-seconds per job of the model."""
        total = sum(one.weight for one in self.classes)
        return math.fsum(one.weight * mean(one.sizes) * mean(one.runtimes) for one in self.classes) / total

    @property
    def load(self) -> float:
        """Return the offered load.

        It is the unit-seconds of all jobs divided by those of the machine.
        """
        return self.jobs * self.area / (self.machine_size * self.seconds)

    @property
    def serial(self) -> float:
        """Return the share of the model's jobs that use one unit."""
        total = sum(one.weight for one in self.classes)
        return sum(one.weight for one in self.classes if one.serial) / total


def mean(pieces: tuple[Piece, ...]) -> float:
    """Return the mean of a distribution that is given as pieces."""
    total = sum(weight for _, _, weight in pieces)
    return math.fsum((low + high) / 2 * weight for low, high, weight in pieces) / total


def parse_model(text: str, where: str) -> WorkloadModel:
    """Parse a model from a TOML text; error messages call the text ``where``."""
    raw = read_toml(text, where, ModelError, manual=_MANUAL, hint="Text needs quotes; a class begins with [[classes]].")
    model = convert_table(raw, WorkloadModel, where, ModelError, _MANUAL)
    _check(model, where)
    return model


def _check(model: WorkloadModel, where: str) -> None:
    try:
        _ = model.seconds
    except PipistrelleError as error:
        raise error.at(f"{where}: duration", ModelError) from None
    limits = {f"gaps[{number}].seconds": (band.seconds, 0.0) for number, band in enumerate(model.gaps)}
    for number, one in enumerate(model.classes):
        place = f"classes[{number}]"
        limits[f"{place}.sizes"] = (one.sizes, 1.0)
        limits[f"{place}.campaigns"] = (one.campaigns, 1.0)
        limits[f"{place}.runtimes"] = (one.runtimes, 0.0)
        if one.users and not any(weight for _, weight in one.users):
            raise ModelError("no user has a weight", where=f"{where}: {place}.users")
    for number, band in enumerate(model.requests):
        limits[f"requests[{number}].used"] = (band.used, 1e-9)
    for place, (pieces, least) in limits.items():
        for low, high, _ in pieces:
            if not least <= low <= high <= _MOST:
                expected = f"{least:g} <= from <= to <= 2^53"
                raise ModelError(
                    "a range is not valid", where=f"{where}: {place}", expected=expected, found=f"{low} {high}"
                )
        if not any(weight for _, _, weight in pieces):
            raise ModelError("all weights are 0", where=f"{where}: {place}")
    if not any(model.hours) or not any(one.weight for one in model.classes):
        raise ModelError("all weights are 0", where=f"{where}: {'classes' if any(model.hours) else 'hours'}")
    ascending = {
        "gaps": [band.below for band in model.gaps],
        "requests": [band.below for band in model.requests],
        "rounds": list(model.rounds),
    }
    for key, values in ascending.items():
        if values != sorted(set(values)):
            raise ModelError("the numbers do not ascend", where=f"{where}: {key}")
    if max(high for one in model.classes for _, high, _ in one.sizes) > model.machine_size:
        raise ModelError("a size is larger than the machine", where=where, expected=f"at most {model.machine_size:,}")


def model_text(model: WorkloadModel) -> str:
    """Return a model as TOML text, from which `parse_model` reads an equal model."""
    plain = msgspec.to_builtins(model)
    tables = ("gaps", "classes", "requests")
    lines = [f"{key} = {_value(value)}" for key, value in plain.items() if key not in tables and value not in ("", ())]
    for table in tables:
        for row in plain[table]:
            lines += ["", f"[[{table}]]"]
            lines += [f"{key} = {_value(value)}" for key, value in row.items() if value not in ((), [])]
    return "\n".join(lines) + "\n"


def _value(value: object) -> str:
    """Return a value as TOML text; long lists are broken into lines."""
    if not isinstance(value, list | tuple):
        return toml_value(int(value) if isinstance(value, float) and value.is_integer() else value)
    texts = [_value(one) for one in value]
    ends = list(accumulate(len(text) + 2 for text in texts))
    if not ends or ends[-1] < 100:
        return f"[{', '.join(texts)}]"
    lines: list[str] = [""]
    for text in texts:
        if len(lines[-1]) + len(text) > 110:
            lines.append("")
        lines[-1] += f" {text}," if lines[-1] else f"  {text},"
    return "\n".join(["[", *lines, "]"])


def _line(found: WorkloadModel) -> str:
    return f"{found.description} ({found.jobs:,} jobs in {found.duration} for {found.machine_size:,} units)"


_CATALOGUE: Final = Catalogue("pipistrelle.models.likeness", "model of a workload", parse_model, ModelError, _line)
names: Final = _CATALOGUE.names
get: Final = _CATALOGUE.get
describe: Final = _CATALOGUE.describe


def is_model(name: str) -> bool:
    """Return whether a name is a bundled model or a TOML file, not a workload."""
    return name in names() or name.endswith(".toml")


def load_model(name: str) -> WorkloadModel:
    """Return a bundled model by its name, or the model in a TOML file."""
    return _CATALOGUE.named(name, text_if_file, "there is no model", "a bundled one, a TOML file, or a log")

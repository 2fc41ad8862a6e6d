"""Choose the axes of a study's picture and draw it.

The command line and scripts use this.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, cast, get_args

from msgspec.structs import replace

from pipistrelle.models.samples.estimates import LEVEL, StatisticsError
from pipistrelle.studies.inference.reports import by_size
from pipistrelle.studies.inference.trials import TrialTable, Value
from pipistrelle.studies.pictures.categories import categories_picture
from pipistrelle.studies.pictures.curves import curves_picture
from pipistrelle.studies.pictures.distributions import default_distribution, ecdf_picture
from pipistrelle.studies.pictures.sizes import sizes_picture
from pipistrelle.studies.pictures.style import PictureLook, selection_text

Kind = Literal["curves", "normalised", "bars", "boxes", "ecdf", "sizes"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
#: {kind: options that it has beside the common ones}
_OWN: Final = {
    "curves": ("x", "by", "panels", "target", "log-scale"),
    "normalised": ("x", "by", "panels", "log-scale"),
    "bars": ("x", "by", "panels", "log-scale"),
    "boxes": ("x", "by", "panels", "log-scale"),
    "ecdf": ("by", "panels"),
    "sizes": ("axis", "values"),
}
_METRICS: Final = ("mean_wait",)


class PictureChoice(StatisticsError):
    """The options of a picture contradict each other."""


def draw_study(
    trials: TrialTable,
    look: PictureLook,
    kind: Kind | None = None,
    *,
    metrics: Sequence[str] = (),
    x: str | None = None,
    by: str | None = None,
    panels: str | None = None,
    targets: Sequence[float] = (),
    axis: str | None = None,
    values: Sequence[Value] | None = None,
    level: float = LEVEL,
) -> tuple[bytes, tuple[str, ...]]:
    """Return a picture of a study's trials, and the metrics that the picture shows.

    Args:
        kind: the kind of picture; None: curves over a numeric axis, else bars.
        metrics: columns; only bars and boxes have several.
        x, by, panels: the axis along the picture, the axis with a colour per value, and the axis with a panel per
            value.
        targets: values of the metric to mark in curves.
        axis, values: an axis and two of its values, which a picture of the kind ``sizes`` compares.

    Raises:
        PictureChoice: the options do not suit the kind of picture.
        PipistrelleError: there is no such axis or metric, or a package is not installed.
    """
    if kind is None:
        kind = "curves" if targets or _is_numeric(trials, x) else "bars"
    look = replace(look, selection=selection_text(trials.selection))
    options = {"x": x, "by": by, "panels": panels, "target": targets, "axis": axis, "values": values}
    check_kind(kind, metrics, {**options, "log-scale": look.log_scale})
    names = tuple(metrics) or _METRICS
    if kind == "sizes":
        name = trials.axis(str(axis))
        chosen = trials.values(name) if values is None else list(values)
        if len(chosen) != 2:
            raise PictureChoice(f"--kind sizes compares two values of {name}: name them with --values A,B.")
        rows = by_size(trials, name, chosen[0], chosen[1], names[0], level=level)
        return sizes_picture(rows, look, first=chosen[0], second=chosen[1], metric=names[0]), names
    if kind == "ecdf":
        return _ecdf(trials, look, by, panels, metrics, level)
    return _over_x(trials, look, kind, x, by, panels, names, level, targets), names


def check_kind(kind: Kind | None, metrics: Sequence[str], options: Mapping[str, object]) -> None:
    """Raise PictureChoice if options do not suit a kind of picture, or are missing.

    Args:
        options: {name: value}; an option with an empty value counts as not given.
    """
    if kind is None:
        return
    for name, value in options.items():
        if value and name not in _OWN[kind]:
            if name == "target" and kind == "normalised":
                raise PictureChoice("--target goes with --kind curves: normalised ones have other values.")
            raise PictureChoice(f"--{name} does not go with --kind {kind}.")
    if kind == "sizes" and "axis" in options and options["axis"] is None:
        raise PictureChoice("--kind sizes needs --axis: two values of it are compared.")
    if len(metrics) > 1 and kind not in ("bars", "boxes"):
        raise PictureChoice(f"--kind {kind} draws one --metric.")


def chosen_axes(trials: TrialTable, x: str | None, by: str | None, panels: str | None = None) -> tuple[str, str | None]:
    """Return the study's axis for the x axis, and its axis with a curve per value.

    The second is None for a single curve. The axis ``panels`` is chosen for neither, unless ``x`` or ``by`` names it.

    Raises:
        PictureChoice: the study has no axis, or ``x`` and ``by`` are the same.
    """
    if not trials.axes:
        raise PictureChoice("the study has no axis: there is nothing to compare.")
    free = [name for name in trials.axes if name != panels] or trials.axes
    over = trials.axis(x) if x is not None else "repair" if "repair" in free else free[-1]
    rest = [name for name in free if name != over]
    if by is not None:
        curves = trials.axis(by)
        if curves == over:
            raise PictureChoice(f"--x and --by are the same axis, {over}.")
        return over, curves
    if "reliability_factor" in rest:
        return over, "reliability_factor"
    return over, rest[0] if rest else None


def _is_numeric(trials: TrialTable, x: str | None) -> bool:
    """Return whether the axis along the picture has at least two numbers or times."""
    if not trials.axes:
        return False
    over = trials.axis(x) if x is not None else "repair" if "repair" in trials.axes else _category(trials.axes)
    try:
        return len({trials.number(over, value) for value in trials.values(over)}) > 1
    except StatisticsError:
        return False


def _category(free: Sequence[str]) -> str:
    """Return the axis whose values are the categories along the picture.

    It is the last axis in ``free`` that is not the policy, or the policy if there is no other axis.
    """
    return next((name for name in reversed(free) if name != "policy"), free[-1])


def _panels(trials: TrialTable, told: str | None, *used: str | None) -> str | None:
    """Return the axis with a panel per value.

    It is the axis ``told``, or else the only axis that is not in ``used``.
    """
    left = [name for name in trials.axes if name not in used]
    return left[0] if told is None and len(left) == 1 else told


def _ecdf(
    trials: TrialTable,
    look: PictureLook,
    by: str | None,
    panels: str | None,
    metrics: Sequence[str],
    level: float,
) -> tuple[bytes, tuple[str, ...]]:
    facet = None if panels is None else trials.axis(panels)
    rest = [name for name in trials.axes if name != facet]
    colours = trials.axis(by) if by is not None else "policy" if "policy" in rest else next(iter(rest), None)
    _check_different({"--by": colours, "--panels": facet})
    facet = _panels(trials, facet, colours)
    metric = metrics[0] if metrics else default_distribution(trials)
    return ecdf_picture(trials, look, by=colours, panels=facet, metric=metric, level=level), (metric,)


def _over_x(
    trials: TrialTable,
    look: PictureLook,
    kind: Kind,
    x: str | None,
    by: str | None,
    panels: str | None,
    metrics: Sequence[str],
    level: float,
    targets: Sequence[float],
) -> bytes:
    facet = None if panels is None else trials.axis(panels)
    if kind in ("curves", "normalised"):
        over, colours = chosen_axes(trials, x, by, facet)
        facet = _panels(trials, facet, over, colours)
        _check_different({"--x": over, "--by": colours, "--panels": facet})
        return curves_picture(
            trials, look, x=over, by=colours, metric=metrics[0], panels=facet, level=level,
            normalised=kind == "normalised", targets=targets,
        )  # fmt: skip
    if not trials.axes:
        raise PictureChoice("the study has no axis: there is nothing to compare.")
    told = None if by is None else trials.axis(by)
    if x is not None:
        over = trials.axis(x)
    else:
        free = [name for name in trials.axes if name not in (told, facet)]
        if not free:
            raise PictureChoice("no axis is left for --x.")
        over = _category(free)
    rest = [name for name in trials.axes if name not in (over, facet)]
    colours = told or ("policy" if "policy" in rest else next(iter(rest), None))
    _check_different({"--x": over, "--by": colours, "--panels": facet})
    facet = _panels(trials, facet, over, colours)
    return categories_picture(
        trials, look, cast(Literal["bars", "boxes"], kind), x=over, by=colours, panels=facet, metrics=metrics,
        level=level,
    )  # fmt: skip


def _check_different(axes: dict[str, str | None]) -> None:
    named = [(option, name) for option, name in axes.items() if name is not None]
    for number, (option, name) in enumerate(named):
        for other, same in named[:number]:
            if same == name:
                raise PictureChoice(f"{other} and {option} are the same axis, {name}.")

"""Policies and what they are made of, by name: orders, backfilling rules and placements, some with options."""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pipistrelle.protocol.base.errors import did_you_mean, printable
from pipistrelle.protocol.base.shapes import misfit
from pipistrelle.schedulers.catalogue.names import PARTS
from pipistrelle.schedulers.composed import ComposedPolicy
from pipistrelle.schedulers.policy.errors import FormulaError, PolicyError
from pipistrelle.schedulers.policy.interfaces import Backfill, Placement
from pipistrelle.schedulers.policy.order import Order

if TYPE_CHECKING:
    from pipistrelle.schedulers.preemption.options import PreemptionOptions

#: how much of a value a message shows
_SHOWN: Final = 60


def check_part(axis: str, part: str, where: str | None = None) -> None:
    """Raise PolicyError, naming the closest, unless there is such a part on the axis.

    ``where`` is what names the part, such as a file.
    """
    known = PARTS[axis]
    if part not in known:
        raise PolicyError(
            f"there is no {axis} '{printable(part)}'", where=where, hint=did_you_mean(part, sorted(known))
        )


def make_order(name: str, options: Mapping[str, Any] | None = None, where: str | None = None) -> Order:
    """Return a new order of this name.

    Raises
    ------
    PolicyError
        when there is none, or it has no such option, or the option no such value; ``where`` is what the table stands
        in.
    FormulaError
        when a formula cannot be read.
    """
    order: Order = _make("order", name, options, where)
    return order


def make_backfill(name: str, options: Mapping[str, Any] | None = None, where: str | None = None) -> Backfill:
    """Return a new backfilling rule of this name; PolicyError as `make_order`."""
    backfill: Backfill = _make("backfill", name, options, where)
    return backfill


def read_placement(text: str, where: str | None = None) -> tuple[str, dict[str, str]]:
    """Return name and options of a placement as in ``contiguous,fit=best``.

    Raises
    ------
    PolicyError
        when there is no such placement, or an option is not of the form KEY=VALUE or stands twice.
    """
    name, *pairs = text.split(",")
    check_part("placement", name, where)
    options: dict[str, str] = {}
    for pair in pairs:
        key, sign, value = pair.partition("=")
        if not (key and sign and value) or key in options:
            what = f"the placement '{name}' has an option that cannot be read"
            expected = "NAME,KEY=VALUE,... with each key once"
            raise PolicyError(what, where=where, expected=expected, found=f"'{printable(pair)[:_SHOWN]}'")
        options[key] = value
    return name, options


def make_placement(text: str, options: Mapping[str, Any] | None = None, where: str | None = None) -> Placement:
    """Return a new placement; those options that stand beside its name (`read_placement`) go before the others.

    Raises
    ------
    PolicyError
        as `make_order` and `read_placement`.
    """
    name, own = read_placement(text, where)
    placement: Placement = _make("placement", name, {**(options or {}), **own}, where)
    return placement


def _make(axis: str, name: str, options: Mapping[str, Any] | None, where: str | None) -> Any:
    check_part(axis, name, where)
    module, make, *table = PARTS[axis][name]
    part = import_module(f"pipistrelle.schedulers.{module}")
    if not table:
        if options:
            with_options = " or ".join(other for other, (_, _, *table) in PARTS[axis].items() if table)
            raise PolicyError(
                f"the {axis} '{name}' has no options",
                where=where,
                expected=f"{axis} = {with_options}, or no such table",
                found=printable(", ".join(options))[:_SHOWN],
            )
        return getattr(part, make)()
    shape: type[msgspec.Struct] = getattr(part, table[0])
    prefix = f"{where}: {axis}-options." if where else f"{axis}-options."
    given = dict(options or {})
    try:
        # A command line has texts only.
        return getattr(part, make)(msgspec.convert(given, shape, strict=axis != "placement"))
    except msgspec.ValidationError as error:
        raise misfit(error, given, shape, prefix, PolicyError) from None
    except OverflowError:
        raise PolicyError("a number is too large", where=prefix.removesuffix(".")) from None
    except (FormulaError, PolicyError) as error:
        raise error.at(f"{prefix}{error.where}" if error.where else where, type(error)) from None


def compose(
    *,
    order: str = "fcfs",
    backfill: str = "none",
    placement: str = "lowest",
    name: str | None = None,
    order_options: Mapping[str, Any] | None = None,
    backfill_options: Mapping[str, Any] | None = None,
    placement_options: Mapping[str, Any] | None = None,
    preemption: "PreemptionOptions | None" = None,
    where: str | None = None,
) -> ComposedPolicy:
    """Return the policy with these parts.

    ``placement`` may have options, as ``contiguous,fit=best``; ``order_options``, ``backfill_options`` and
    ``placement_options`` are tables as in a preset's file, which ``where`` names. With ``preemption`` running jobs
    may lose their units to others.

    Raises
    ------
    PolicyError
        when a part is unknown, the text names the closest; or when it has no such option or value.
    FormulaError
        when a formula cannot be read.
    """

    def anew() -> Backfill:
        return make_backfill(backfill, backfill_options, where)

    rule = anew()
    if preemption is not None:
        from pipistrelle.schedulers.preemption.preempting import Preempting  # most runs start without it

        rule = Preempting(rule, anew, preemption, where)
    return ComposedPolicy(
        name or f"{order}+{backfill}+{placement}",
        make_order(order, order_options, where),
        rule,
        make_placement(placement, placement_options, where),
        anew,
    )

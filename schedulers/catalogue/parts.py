"""Create policies, orders, backfilling rules and placements by name and options."""

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

#: most characters of a value in a message
_SHOWN: Final = 60


def check_part(axis: str, part: str, where: str | None = None) -> None:
    """Raise PolicyError if no order, backfilling rule or placement has this name.

    ``axis`` says which of the three kinds to check, such as ``order``. ``where`` names the source in messages.
    """
    known = PARTS[axis]
    if part not in known:
        raise PolicyError(
            f"there is no {axis} '{printable(part)}'", where=where, hint=did_you_mean(part, sorted(known))
        )


def make_order(name: str, options: Mapping[str, Any] | None = None, where: str | None = None) -> Order:
    """Return a new order of this name; ``where`` names its file in messages.

    Raises:
        PolicyError: unknown name, option or value.
        FormulaError: invalid formula.
    """
    order: Order = _make("order", name, options, where)
    return order


def make_backfill(name: str, options: Mapping[str, Any] | None = None, where: str | None = None) -> Backfill:
    """Return a new backfilling rule.

    Raise PolicyError if its name or an option is invalid.
    """
    backfill: Backfill = _make("backfill", name, options, where)
    return backfill


def read_placement(text: str, where: str | None = None) -> tuple[str, dict[str, str]]:
    """Return (name, options) of a placement such as ``contiguous,fit=best``.

    Raises:
        PolicyError: the placement is unknown, or an option is not KEY=VALUE or is repeated.
    """
    name, *pairs = text.split(",")
    check_part("placement", name, where)
    options: dict[str, str] = {}
    for pair in pairs:
        key, sign, value = pair.partition("=")
        if not (key and sign and value) or key in options:
            what = f"invalid option of the placement '{name}'"
            expected = "NAME,KEY=VALUE,... with each key once"
            raise PolicyError(what, where=where, expected=expected, found=f"'{printable(pair)[:_SHOWN]}'")
        options[key] = value
    return name, options


def make_placement(text: str, options: Mapping[str, Any] | None = None, where: str | None = None) -> Placement:
    """Return a new placement; options in ``text`` take precedence over ``options``."""
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
        # Values from the command line are always texts.
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
    """Return the policy with this order, backfilling rule and placement.

    Args:
        placement: name, possibly with options, such as ``contiguous,fit=best``.
        order_options: options of the order, as in a preset's file.
        backfill_options, placement_options: options of the other two parts.
        preemption: options of preemption; None: no preemption.
        where: the preset's file, for messages.

    Raises:
        PolicyError: unknown part, option or value.
        FormulaError: invalid formula.
    """

    def anew() -> Backfill:
        return make_backfill(backfill, backfill_options, where)

    rule = anew()
    if preemption is not None:
        from pipistrelle.schedulers.preemption.preempting import Preempting  # most runs do not need it

        rule = Preempting(rule, anew, preemption, where)
    return ComposedPolicy(
        name or f"{order}+{backfill}+{placement}",
        make_order(order, order_options, where),
        rule,
        make_placement(placement, placement_options, where),
        anew,
    )

"""Options of the parts of a scheduler that have some, and how often it looks."""

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from pipistrelle.cli.guard import FilledPath
from pipistrelle.protocol.base.errors import printable
from pipistrelle.protocol.base.lengths import seconds_of
from pipistrelle.protocol.base.log import logger

if TYPE_CHECKING:
    from pipistrelle.schedulers.policy.interfaces import Policy

MAUI: Final = "maui"
#: as of the lengths of time in files of failures; far below what a double can tell apart from the next second
_LONGEST_S: Final = 1e14
_C = TypeVar("_C", bound=Callable[..., Any])


def _named_numbers(least: float) -> Callable[..., tuple[tuple[str, float], ...]]:
    """Return what reads texts NAME=NUMBER, with finite numbers not below ``least``."""

    def read(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> tuple[tuple[str, float], ...]:
        found = []
        for text in texts:
            name, sign, digits = text.rpartition("=")
            try:
                number = float(digits)
            except ValueError:
                number = math.nan
            if not sign or not name or not math.isfinite(number) or number < least:
                rule = f" not below {least:g}" if least > -math.inf else ""
                raise click.BadParameter(f"'{text}' is not NAME=NUMBER with a finite number{rule}.", ctx, param)
            found.append((name, number))
        return tuple(found)

    return read


def _span(ctx: click.Context, param: click.Parameter, text: str | None) -> str | None:
    """Return the text of a length of time, at least 0 and not longer than a run can be."""
    try:
        if text is not None and seconds_of(text) > _LONGEST_S:
            raise click.BadParameter(f"'{text}' is longer than {_LONGEST_S:g} s.", ctx, param)
    except ValueError as error:
        raise click.BadParameter(f"'{text}' is no length of time: {error}.", ctx, param) from None
    return text


def _step(ctx: click.Context, param: click.Parameter, text: str | None) -> str | None:
    """Return the text of a length of time above zero."""
    if _span(ctx, param, text) is not None and seconds_of(text or "") <= 0:
        raise click.BadParameter(f"'{text}' is not above zero.", ctx, param)
    return text


_OPTIONS: Final = (
    click.option("--formula", metavar="TEXT", help="Order pbs: sort the queue by this, highest first (docs/pbs.md)."),
    click.option(
        "--queue-priority",
        callback=_named_numbers(-math.inf),
        multiple=True,
        metavar="QUEUE=NUMBER",
        help="Order pbs: the queue's priority, else 0; may be repeated.",
    ),
    click.option(
        "--fairshare-entity",
        type=click.Choice(["user", "group", "account", "queue", "qos"]),
        help="Order pbs: whom usage is charged to.",
    ),
    click.option(
        "--fairshare-shares",
        callback=_named_numbers(0.0),
        multiple=True,
        metavar="ENTITY=SHARES",
        help="Order pbs: the entity's shares; may be repeated.",
    ),
    click.option(
        "--unknown-shares",
        type=click.FloatRange(min=0),
        metavar="SHARES",
        help="Order pbs: the shares of all entities together that have none of their own.",
    ),
    click.option(
        "--fairshare-decay-time",
        callback=_span,
        metavar="TIME",
        help="Order pbs: how often usage fades, as 24h or 168:00:00; with a factor of 0.5 its half-life; 0: never.",
    ),
    click.option(
        "--fairshare-decay-factor",
        type=click.FloatRange(min=0, max=1),
        metavar="FACTOR",
        help="Order pbs: what usage is multiplied by each time.",
    ),
    click.option(
        "--backfill-depth",
        type=click.IntRange(min=0),
        metavar="JOBS",
        help="Backfilling rule depth: how many of the first jobs have a reservation; with 0 nobody passes.",
    ),
    click.option(
        "--strict-ordering/--no-strict-ordering",
        default=None,
        help="Backfilling rule depth: without it, all that fits starts in the order of the queue, no reservations.",
    ),
    click.option(
        "--config",
        type=FilledPath(dir_okay=False),
        metavar="FILE",
        help="Scheduler or order maui: a maui.cfg (docs/maui.md); default: Maui's defaults.",
    ),
    click.option(
        "--strict-config", is_flag=True, help="Refuse a --config with anything that is unknown or not supported."
    ),
    click.option(
        "--poll",
        callback=_step,
        metavar="TIME",
        help="Decide only at the multiples of this, as 5s; default: whenever something happens.",
    ),
)
#: {parameter: (which table, its key)}
_KEYS: Final = {
    "formula": ("order", "formula"),
    "queue_priority": ("order", "queue-priorities"),
    "fairshare_entity": ("order", "fairshare-entity"),
    "fairshare_shares": ("order", "fairshare-shares"),
    "unknown_shares": ("order", "unknown-shares"),
    "fairshare_decay_time": ("order", "decay-time"),
    "fairshare_decay_factor": ("order", "decay-factor"),
    "backfill_depth": ("backfill", "depth"),
    "strict_ordering": ("backfill", "strict-ordering"),
}


@dataclass(frozen=True, slots=True)
class PolicySettings:
    """What the options say, as the tables of a preset.

    ``poll`` is the step in seconds, None without; ``config`` the name of a maui.cfg, which is refused if anything in it
    has no effect and ``strict_config`` is true; ``words`` are the options as a command line has them.
    """

    order_options: Mapping[str, Any] = field(default_factory=dict)
    backfill_options: Mapping[str, Any] = field(default_factory=dict)
    poll: float | None = None
    config: str | None = None
    strict_config: bool = False
    words: tuple[str, ...] = ()

    def make_policy(self, name: str, *, warn: bool = True, **parts: Any) -> "Policy":
        """Return the policy of this name with these parts replaced, and these options.

        What of a maui.cfg has no effect is logged as warnings if ``warn`` is true.

        Raises
        ------
        PipistrelleError
            as `make_policy` does.
        """
        from pipistrelle.schedulers.catalogue.registry import make_policy  # help needs none of these modules

        formula = self.order_options.get("formula")
        if formula is not None:
            from pipistrelle.schedulers.pbs.formula import Formula
            from pipistrelle.schedulers.pbs.order import UNKNOWN, VARIABLES

            Formula(formula, VARIABLES, "--formula", UNKNOWN)  # so that a message names the option
        options = dict(self.order_options)
        if self.config is not None or self.strict_config:
            self._read_config(name, parts.get("order"), warn=warn)
            if name != MAUI:
                options["config"] = self.config
        replaced = {axis for axis, part in parts.items() if part is not None}
        if name == MAUI and self.config is not None and not replaced - {"placement"} and not options:
            from pipistrelle.schedulers.catalogue.parts import make_placement
            from pipistrelle.schedulers.maui.policy import load_maui  # most runs start without it

            placed = make_placement(parts["placement"]) if "placement" in replaced else None
            policy: Policy = load_maui(Path(self.config), placement=placed)[0]
        else:
            made = {"order_options": options, "backfill_options": self.backfill_options}
            policy = make_policy(name, **parts, **made)  # type: ignore[arg-type]
        if self.poll is None:
            return policy
        from pipistrelle.schedulers.policy.polling import Polling

        return Polling(policy, self.poll)

    def _read_config(self, name: str, order: str | None, *, warn: bool) -> None:
        """Read the maui.cfg once, for its warnings; raise PolicyError if nobody else would."""
        from pipistrelle.schedulers.policy.errors import PolicyError

        if self.config is None:
            raise PolicyError("--strict-config goes with --config FILE")
        if MAUI not in (name, order):
            raise PolicyError(
                f"'{printable(name)}' reads no maui.cfg", where="--config", expected="the scheduler or the order maui"
            )
        from pipistrelle.schedulers.maui.config.read import read_maui_config

        for warning in read_maui_config(Path(self.config), strict=self.strict_config)[1]:
            if warn:
                logger().warning("{}", warning)


def part_options(function: _C) -> _C:
    """Add these options; the command gets them as one argument, ``settings``."""

    @functools.wraps(function)
    def collected(*args: Any, **kwargs: Any) -> Any:
        tables: dict[str, dict[str, Any]] = {"order": {}, "backfill": {}}
        words: list[str] = []
        for parameter, (table, key) in _KEYS.items():
            value = kwargs.pop(parameter)
            option = f"--{parameter.replace('_', '-')}"
            if value is None or value == ():
                continue
            if isinstance(value, tuple):
                tables[table][key] = dict(value)
                words += [word for name, number in value for word in (option, f"{name}={number!r}")]
            elif isinstance(value, bool):
                tables[table][key] = value
                words.append(option if value else option.replace("--", "--no-", 1))
            else:
                tables[table][key] = value
                words += [option, str(value)]
        poll = kwargs.pop("poll")
        if poll is not None:
            words += ["--poll", poll]
        step = None if poll is None else seconds_of(poll)
        config, strict = kwargs.pop("config"), kwargs.pop("strict_config")
        words += [] if config is None else ["--config", config]
        words += ["--strict-config"] if strict else []
        settings = PolicySettings(tables["order"], tables["backfill"], step, config, strict, tuple(words))
        return function(*args, settings=settings, **kwargs)

    command: Any = collected
    for option in reversed(_OPTIONS):
        command = option(command)
    decorated: _C = command
    return decorated

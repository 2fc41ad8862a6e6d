"""Make nodes, reservations and shares from outputs of Slurm's commands.

The commands are scontrol, sinfo and sshare.
"""

import re
from collections.abc import Mapping
from typing import Final

from pipistrelle.traces.errors import line_fault
from pipistrelle.traces.logs.times import Clock
from pipistrelle.traces.slurm.state.names import NODE_OUT, NOTHING
from pipistrelle.traces.slurm.state.records import LiveReservation, LiveShare

_STATE: Final = re.compile(r"[A-Z_+]{1,200}[*~#!%$@^-]{0,4}")
_USAGE: Final = re.compile(r"\d{1,20}(?:\.\d{1,9})?")


def node_is_out(state: str, place: str) -> bool:
    """Return whether a node in this state takes no new jobs.

    Args:
        state: the state that scontrol or sinfo prints, in capitals: ``IDLE+DRAIN``, ``DRAIN*``.

    Raises:
        TraceError: the text is no state.
    """
    if _STATE.fullmatch(state) is None:
        raise line_fault(f"{place}, state", "this is no state of a node", "as IDLE+DRAIN or down*", state)
    if state.endswith("*"):  # the node does not respond
        return True
    parts = state.rstrip("~#!%$@^-").split("+")
    return any(part == out or part.startswith(("DOWN", "DRAIN", "FAIL")) for part in parts for out in NODE_OUT)


def reservation_of(cells: Mapping[str, str], place: str, clock: Clock) -> LiveReservation:
    """Return the reservation of a record of ``scontrol show reservation``.

    Raises:
        TraceError: a time is missing or malformed.
    """

    def text(name: str) -> str:
        found = cells.get(name, "").strip()
        return "" if found in NOTHING else found

    times = []
    for name in ("StartTime", "EndTime"):
        time = clock.iso(text(name))
        if time is None:
            raise line_fault(f"{place}, {name}", "this is not a time", "as 2026-01-05T08:00:00", text(name))
        times.append(time)
    return LiveReservation(
        place=place,
        name=text("ReservationName"),
        start=times[0],
        end=times[1],
        nodes=text("Nodes"),
        users=_names(text("Users")),
        accounts=_names(text("Accounts")),
        flags=_names(text("Flags").upper()),
        licenses=text("Licenses"),
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (name.strip() for name in text.split(","))))


def share_of(cells: Mapping[str, str], place: str) -> LiveShare | None:
    """Return the usage of a row of sshare; None if the row has no usage.

    Raises:
        TraceError: the account is missing, or the usage is no number.
    """
    account, usage = cells.get("Account", "").strip(), cells.get("RawUsage", "").strip()
    if not account:
        raise line_fault(f"{place}, Account", "the row has no account", "a name", "")
    if not usage:
        return None
    if _USAGE.fullmatch(usage) is None:
        raise line_fault(f"{place}, RawUsage", "this is no usage", "a number", usage)
    user = cells.get("User", "").strip()
    return LiveShare(account, user, cells.get("Partition", "").strip(), float(usage))

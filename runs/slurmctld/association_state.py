"""Write the files in which slurmctld 22.05 keeps associations and QOS while slurmdbd does not answer.

slurmctld reads these files at its start if it cannot reach slurmdbd. So it needs no database. The numbers are
big-endian, and texts are written as in messages (wire.py).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from struct import pack
from typing import Final

from pipistrelle.protocol.base.errors import InputError, printable
from pipistrelle.protocol.base.whole import whole_file
from pipistrelle.runs.slurmctld.wire import NO_VALUE, VERSION, text
from pipistrelle.schedulers.slurm.config.accounts import AssociationSettings, QosSettings
from pipistrelle.schedulers.slurm.files.accounting import ROOT, Accounting

#: a limit that does not exist
_UNLIMITED: Final = 0xFFFFFFFF
#: share of a user that counts as its account
_SHARE_OF_PARENT: Final = 0x7FFFFFFF
_FACTOR: Final = 1_000_000.0
#: kinds of lists: users, licenses of the database, QOS, associations
_USERS: Final = 1406
_RESOURCES: Final = 1477
_QOS: Final = 1447
_ASSOCIATIONS: Final = 1404
_ADMINISTRATOR: Final = 3
_NO_ADMINISTRATOR: Final = 1
#: trackable resources that every cluster has, by number
_TRES: Final = ("cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages")
_FIRST_OTHER: Final = 1001
#: sacctmgr 22.05 stores OFF as the mode of the cluster
_MODES: Final = {None: 0, "OFF": 0, "REQUEUE": 2, "CANCEL": 8}
_FLAGS: Final = {
    name: 1 << place
    for place, name in enumerate(
        (
            *("partitionminnodes", "partitionmaxnodes", "partitiontimelimit", "enforceusagethreshold", "noreserve"),
            *("requiresreservation", "denyonlimit", "overpartqos", "nodecay", "usagefactorsafe"),
        )
    )
}
_NORMAL: Final = "normal"
#: no limit on running minutes of a user or account, which slurmctld 22.05 does not test
_UNTESTED: Final = text("")
#: limits of an association that the associations below it have, too, unless they have their own
_INHERITED: Final = ("max_jobs", "max_submit_jobs", "max_jobs_accrue", "max_wall_pj", "min_prio_thresh")
_INHERITED_TRES: Final = ("max_tres_pj", "max_tres_pn", "max_tres_mins_pj")


def write_association_state(
    folder: Path, accounting: Accounting, cluster: str, tres: Sequence[str], users: Mapping[str, int], now: int
) -> None:
    """Write the associations and QOS, and the trackable resources, to slurmctld's folder of states.

    Args:
        cluster: ``ClusterName``.
        tres: names in ``AccountingStorageTRES``.
        users: {user: uid}, for all users of the associations except root.
        now: the time (s since 1970).

    Raises:
        InputError: a value is not supported.
    """
    others = dict.fromkeys(name.lower() for name in tres if name.lower() not in _TRES)
    numbers = {name: number for number, name in enumerate(_TRES, start=1)}
    numbers |= {name: number for number, name in enumerate(others, start=_FIRST_OTHER)}
    state = _State(accounting, cluster, numbers, {**users, ROOT: 0})
    head = pack(">HQ", VERSION, now)
    with whole_file(folder / "assoc_mgr_state") as file:
        file.write(head + state.users() + pack(">H", _RESOURCES) + _list([]) + state.qos() + state.associations())
    with whole_file(folder / "last_tres") as file:
        file.write(head + _list([_tres(name, number) for name, number in numbers.items()]))


def _list(records: Sequence[bytes]) -> bytes:
    return pack(">L", len(records)) + b"".join(records) + pack(">L", 0)


def _tres(name: str, number: int) -> bytes:
    kind, _, more = name.partition("/")
    return pack(">QQL", 0, 0, number) + text(more) + text(kind)


def _limit(value: float | None) -> bytes:
    return pack(">L", _UNLIMITED if value is None or math.isinf(value) else int(value))


def _limits(*values: float | None) -> bytes:
    return b"".join(map(_limit, values))


def _minutes(seconds: float | None) -> float | None:
    return None if seconds is None else seconds // 60


def _names(names: Iterable[str] | None) -> bytes:
    if names is None:
        return pack(">L", NO_VALUE)
    found = list(names)
    return pack(">L", len(found)) + b"".join(map(text, found))


class _State:
    """Turns associations and QOS into records."""

    def __init__(self, accounting: Accounting, cluster: str, tres: Mapping[str, int], users: Mapping[str, int]) -> None:
        self._settings, self._cluster, self._tres, self._users = accounting, cluster, tres, users
        named = {one.name: one for one in accounting.qos}
        ordered = [named.pop(_NORMAL, QosSettings(name=_NORMAL)), *named.values()]
        self._qos = {one.name: (number, one) for number, one in enumerate(ordered, start=1)}
        self._accounts = {one.account: one for one in accounting.associations if not one.user}

    def users(self) -> bytes:
        """Return the list of users."""
        names = dict.fromkeys([ROOT, *(one.user for one in self._settings.associations if one.user)])
        records = []
        for name in names:
            level = _ADMINISTRATOR if name == ROOT else _NO_ADMINISTRATOR
            head = pack(">HLL", level, NO_VALUE, 0) + text(ROOT if name == ROOT else "") + text("")
            records.append(head + pack(">L", 0) + text(name) + text("") + pack(">LL", self._uid(name), NO_VALUE))
        return pack(">H", _USERS) + _list(records)

    def qos(self) -> bytes:
        """Return the list of QOS."""
        return pack(">H", _QOS) + _list([self._one_qos(number, one) for number, one in self._qos.values()])

    def associations(self) -> bytes:
        """Return the list of associations, each after the one above it."""
        below: dict[str, list[AssociationSettings]] = {}
        for one in self._settings.associations:
            if one.user or one.account != ROOT:
                below.setdefault(one.account if one.user else one.parent or ROOT, []).append(one)
        order: list[AssociationSettings] = []
        edges: list[list[int]] = []
        places: list[int] = []
        edge = 0
        end = None  # after everything below an association
        todo: list[AssociationSettings | None] = [self._accounts.get(ROOT, AssociationSettings(account=ROOT))]
        while todo:
            edge += 1
            taken = todo.pop()
            if not isinstance(taken, AssociationSettings):
                edges[places.pop()].append(edge)
                continue
            places.append(len(order))
            order.append(taken)
            edges.append([edge])
            todo.append(end)
            todo += reversed(below.get(taken.account, ()) if not taken.user else ())
        numbers = {one.account: number for number, one in enumerate(order, start=1) if not one.user}
        defaults = {one.user: one for one in reversed(order) if one.user and not one.partition}
        defaults |= {one.user: one for one in reversed(order) if one.user and one.is_default}
        records = []
        for number, (one, (left, right)) in enumerate(zip(order, edges, strict=True), start=1):
            parent = 0 if number == 1 else numbers[one.account if one.user else one.parent or ROOT]
            is_default = defaults.get(one.user) is one
            records.append(self._association(one, number, (left, right), parent, is_default=is_default))
        return pack(">H", _ASSOCIATIONS) + _list(records)

    # -- private

    def _uid(self, name: str) -> int:
        return self._users[name]

    def _counts(self, values: Mapping[str, float], where: str) -> bytes:
        """Return limits on trackable resources as Slurm's database writes them: 1=32,2=64000."""
        parts = []
        for name, value in values.items():
            number = self._tres.get(name.lower())
            if number is None:
                raise InputError(
                    f"{where} limits {printable(name)}, which the cluster does not track",
                    expected=f"one of {', '.join(self._tres)}",
                    hint="Add it to AccountingStorageTRES in slurm.conf.",
                )
            if not math.isinf(value):
                parts.append(f"{number}={int(value)}")
        return text(",".join(sorted(parts, key=lambda part: int(part.partition("=")[0]))))

    def _number_of_qos(self, name: str) -> int:
        return self._qos[name][0]

    def _one_qos(self, number: int, one: QosSettings) -> bytes:
        where = f"QOS {printable(one.name)}"
        mode = _MODES[one.preempt_mode]
        strange = sorted(name for name in one.flags if name.lower() not in _FLAGS)
        if strange:
            raise InputError(f"{where} has a flag that is not supported", found=printable(strange[0]))
        flags = sum(_FLAGS[name.lower()] for name in one.flags)
        bits = sum(1 << self._number_of_qos(name) for name in one.preempt)
        preempted = pack(">L", len(self._qos) + 1) + text(f"0x{bits:X}") if bits else pack(">L", NO_VALUE)
        unlimited = float(_UNLIMITED)
        factors = (one.usage_factor, one.usage_thres, one.limit_factor)

        def counts(values: Mapping[str, float]) -> bytes:
            return self._counts(values, where)

        return b"".join(
            (
                text("") + pack(">LLL", number, flags, int(one.grace_time)),
                counts(one.grp_tres_mins) + counts(one.grp_tres_run_mins) + counts(one.grp_tres),
                _limits(one.grp_jobs, one.grp_jobs_accrue, one.grp_submit_jobs, _minutes(one.grp_wall)),
                counts(one.max_tres_mins_pj) + _UNTESTED + _UNTESTED,
                counts(one.max_tres_pa) + counts(one.max_tres_pj) + counts(one.max_tres_pn) + counts(one.max_tres_pu),
                _limits(one.max_jobs_pa, one.max_jobs_pu, one.max_jobs_accrue_pa, one.max_jobs_accrue_pu),
                _limits(one.min_prio_thresh, one.max_submit_jobs_pa, one.max_submit_jobs_pu),
                _limit(_minutes(one.max_wall_pj)) + counts(one.min_tres_pj) + text(one.name),
                preempted + _names(None) + pack(">H", mode),
                _limit(one.preempt_exempt_time) + pack(">L", one.priority),
                b"".join(pack(">d", (unlimited if factor is None else factor) * _FACTOR) for factor in factors),
            )
        )

    def _above(self, one: AssociationSettings) -> list[AssociationSettings]:
        """Return an association and the accounts above it, lowest first."""
        found = [one]
        name = one.account if one.user else one.parent
        while name or found[-1].account != ROOT:
            account = self._accounts.get(name or ROOT, AssociationSettings(account=ROOT))
            found.append(account)
            if account.account == ROOT:
                break
            name = account.parent
        return found

    def _association(
        self, one: AssociationSettings, number: int, edges: tuple[int, int], parent: int, *, is_default: bool
    ) -> bytes:
        line = self._above(one)
        where = f"the association of {printable(one.user or one.account)}"

        def own(name: str) -> float | None:
            return next((value for each in line if (value := getattr(each, name)) is not None), None)

        def counts(values: Mapping[str, float]) -> bytes:
            return self._counts(values, where)

        single = {name: own(name) for name in _INHERITED}
        tres = {
            name: {key: value for each in reversed(line) for key, value in getattr(each, name).items()}
            for name in _INHERITED_TRES
        }
        allowed = next((each.qos for each in line if each.qos is not None), (_NORMAL,))
        default = next((each.default_qos for each in line if each.default_qos), "")
        shares = _SHARE_OF_PARENT if one.inherits_share else int(one.shares)
        left, right = edges
        return b"".join(
            (
                pack(">L", NO_VALUE) + text(one.account) + text(self._cluster),
                pack(">LHL", self._number_of_qos(default) if default else 0, 0, shares),
                counts(one.grp_tres_mins) + counts(one.grp_tres_run_mins) + counts(one.grp_tres),
                _limits(one.grp_jobs, one.grp_jobs_accrue, one.grp_submit_jobs, _minutes(one.grp_wall)),
                pack(">LHL", number, is_default, left),
                counts(tres["max_tres_mins_pj"]) + _UNTESTED,
                counts(tres["max_tres_pj"]) + counts(tres["max_tres_pn"]),
                _limits(single["max_jobs"], single["max_jobs_accrue"], single["min_prio_thresh"]),
                _limits(single["max_submit_jobs"], _minutes(single["max_wall_pj"])),
                text("" if one.user or one.account == ROOT else one.parent or ROOT) + pack(">L", parent),
                text(one.partition) + pack(">L", one.priority),
                _names(str(self._number_of_qos(name)) for name in allowed),
                pack(">LL", right, self._uid(one.user) if one.user else NO_VALUE) + text(one.user),
            )
        )

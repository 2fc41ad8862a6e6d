"""Read accounts, users and QOS from dumps, listings and commands of sacctmgr.

Three forms are read: files of ``sacctmgr dump``, tables of ``sacctmgr -P show assoc`` and ``sacctmgr -P show qos``, and
files of commands such as ``add account bio Fairshare=20``.
"""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import Any, Final

from msgspec import Struct

from pipistrelle.platforms.slurm.conf import KeyFinding, SlurmConfigError
from pipistrelle.platforms.slurm.keys import KeySupport
from pipistrelle.platforms.slurm.lines import WORD
from pipistrelle.protocol.base.errors import did_you_mean, legible, printable, shown
from pipistrelle.schedulers.slurm.config.accounts import AssociationSettings, QosSettings
from pipistrelle.schedulers.slurm.files.limits import ASSOCIATION, QOS, LimitOptions, plain_name

ROOT: Final = "root"
NORMAL: Final = "normal"
_DUMP: Final = re.compile(r"\s*(Cluster|Parent|Account|User|QOS)\s+-\s+(.*)", re.IGNORECASE)
#: most characters of a file; a million characters of commands take two seconds
_LONGEST: Final = 4_000_000
#: number of lines by which a file's kind is recognised
_FIRST_LINES: Final = 1000
_VERBS: Final = ("add", "create", "modify", "delete", "remove")
_IDLE_VERBS: Final = ("list", "show", "exit", "quit", "verbose", "version", "reconfigure", "dump", "load", "clear")
#: words of a shell that may precede the name of an object
_SHELL: Final = ("echo", "do", "in", "for", "then")
_WORDS: Final = re.compile(
    r"\b(add|create|modify|delete|remove)\s+(account|cluster|qos|user|association)s?\b", re.IGNORECASE
)
_OBJECTS: Final = {
    "account": "account",
    "accounts": "account",
    "acct": "account",
    "cluster": "cluster",
    "clusters": "cluster",
    "qos": "qos",
    "user": "user",
    "users": "user",
}
_EXAMPLE: Final = "a file of 'sacctmgr dump', a table of 'sacctmgr -P show assoc' or 'sacctmgr -P show qos'"


class Accounting(Struct, frozen=True):
    """The content of accounting files.

    For each option, it says whether the option is honoured or ignored.

    Attributes:
        places: {(account, user, partition): file and line} of the associations with a partition.
    """

    associations: tuple[AssociationSettings, ...] = ()
    qos: tuple[QosSettings, ...] = ()
    findings: tuple[KeyFinding, ...] = ()
    places: Mapping[tuple[str, str, str], str] = {}


def is_accounting(text: str) -> bool:
    """Return whether a text is a dump, a listing or commands of sacctmgr.

    The first lines with content decide.
    """
    lines = (line for line in text.splitlines() if line and not line.isspace() and not line.lstrip().startswith("#"))
    return any(
        _DUMP.match(line) or (_is_header(line) and "JobID" not in line) or _WORDS.search(line)
        for line in islice(lines, _FIRST_LINES)
    )


def read_accounting(files: Sequence[tuple[str, str]], cluster: str = "") -> Accounting:
    """Return the associations and QOS of accounting files.

    Later values override earlier ones. If an association names a QOS that no file describes, the QOS has no limits.
    ``root`` always exists.

    Args:
        files: (name, text) of each file.
        cluster: name of the cluster, for files with several.

    Raises:
        SlurmConfigError: with file and line, if a file is of another kind, or a value is malformed.
    """
    reader = _Reader(cluster)
    for name, text in files:
        reader.read(name, text)
    return reader.made()


def _is_header(line: str) -> bool:
    cells = {plain_name(cell) for cell in line.split("|")}
    return ("account" in cells and ("user" in cells or "share" in cells)) or ("name" in cells and "priority" in cells)


class _Reader:
    def __init__(self, cluster: str) -> None:
        self._cluster = cluster.lower()
        self._options = LimitOptions()
        #: {(account, user, partition): {field: value}}; accounts have no user
        self._associations: dict[tuple[str, str, str], dict[str, Any]] = {}
        self._qos: dict[str, dict[str, Any]] = {}
        #: {association: file and line}, {QOS: file and line}
        self._places: dict[tuple[str, str, str], str] = {}
        self._qos_places: dict[str, str] = {}
        #: whether the QOS ``normal``, which every cluster has at first, still exists
        self._normal = True

    def made(self) -> Accounting:
        self._check_accounts()
        self._check_qos()
        for key, own in self._associations.items():
            if own.get("qos") is not None:
                own["qos"] = self._allowed(*key)
        found = dict(self._associations)
        if found:
            root: dict[tuple[str, str, str], dict[str, Any]] = {(ROOT, "", ""): {}, (ROOT, ROOT, ""): {}}
            found = {**{key: found.get(key, value) for key, value in root.items()}, **found}
        associations = tuple(
            AssociationSettings(**{**values, "account": account, "user": user, "partition": partition})
            for (account, user, partition), values in found.items()
        )
        named = {name for one in associations for name in (*(one.qos or ()), one.default_qos) if name}
        qos = {NORMAL: {}, **self._qos} if self._normal and (found or self._qos) else dict(self._qos)
        missing = sorted(named - qos.keys())
        if missing:
            why = f"no file describes the QOS {', '.join(missing[:5])}: they have no limits and the priority 0"
            where = "the files of accounting"
            self._options.findings.append(KeyFinding(where, "QOS", KeySupport.WARNED, why))
            qos |= {name: {} for name in missing}
        self._check_default_qos()
        settings = tuple(QosSettings(**{**values, "name": name}) for name, values in qos.items())
        places = {key: self._places[key] for key in self._associations if key[2]}
        return Accounting(associations, settings, tuple(self._options.findings), places)

    def _allowed(self, account: str, user: str, partition: str) -> tuple[str, ...] | None:
        """Return the QOS that an association may use; None: all.

        A list of names with signs, such as ``+high``, changes the list of the account above.
        """
        own = self._associations.get((account, user, partition), {})
        names = own.get("qos")
        if names is not None and not all(name[:1] in "+-" for name in names):
            return tuple(names)
        if account == ROOT and not user:
            return None if names is None else tuple(name[1:] for name in names if name[0] == "+")
        above = self._allowed(account if user else own.get("parent", ROOT), "", "")
        if above is None or not names:
            return above
        gone = {name[1:] for name in names}
        more = [name[1:] for name in names if name[0] == "+"]
        return (*(name for name in above if name not in gone), *more)

    def _check_default_qos(self) -> None:
        """Warn about each default QOS that its association may not use."""
        for key, settings in self._associations.items():
            default, allowed = settings.get("default_qos"), self._allowed(*key)
            if default and allowed and default not in allowed:
                why = f"{_owner(*key)} may not use its default QOS {default}: jobs get another one, or are rejected"
                self._warn("DefaultQOS", why, self._places[key])

    def _warn(self, key: str, why: str, where: str) -> None:
        self._options.findings.append(KeyFinding(where, legible(key, WORD), KeySupport.WARNED, printable(why)))

    def _check_accounts(self) -> None:
        """Raise SlurmConfigError if an account does not exist, or is below itself."""
        accounts = {account for account, user, _ in self._associations if not user} | {ROOT}
        parents = {key[0]: settings.get("parent", ROOT) for key, settings in self._associations.items() if not key[1]}
        for (account, user, partition), settings in self._associations.items():
            where = self._places[account, user, partition]
            above = account if user else settings.get("parent", ROOT)
            if above not in accounts:
                of = f"of user {shown(user)} " if user else f"above {shown(account)} "
                hint = did_you_mean(above, sorted(accounts)[:1000])
                raise SlurmConfigError(
                    f"there is no account {shown(above)}, {of.strip()}",
                    where=where,
                    hint=hint if hint.startswith("Did") else None,
                )
        harmless = {ROOT}
        for account, above in parents.items():
            seen, at = {account}, above
            while at not in harmless and account != ROOT:
                if at in seen:
                    raise SlurmConfigError(f"the account {shown(at)} is below itself", where=self._places[at, "", ""])
                seen.add(at)
                at = parents.get(at, ROOT)
            harmless |= seen

    def _check_qos(self) -> None:
        """Raise SlurmConfigError if a QOS may preempt one that does not exist."""
        known = {NORMAL, *self._qos} if self._normal else {*self._qos}
        for name, settings in self._qos.items():
            strange = next((one for one in settings.get("preempt", ()) if one not in known), None)
            if strange is not None:
                hint = did_you_mean(strange, sorted(known)[:1000])
                raise SlurmConfigError(
                    f"QOS {shown(name)} preempts {shown(strange)}, which no file describes",
                    where=self._qos_places[name],
                    hint=hint if hint.startswith("Did") else None,
                )

    def read(self, name: str, text: str) -> None:
        """Read an accounting file, whose first line tells its kind."""
        if len(text) > _LONGEST or "\0" in text:
            raise SlurmConfigError("the file is binary or too large", where=name, expected=_EXAMPLE)
        lines = [
            (f"{name}:{number}", line)
            for number, line in enumerate(text.splitlines(), start=1)
            if line.strip() and not line.lstrip().startswith("#")
        ]
        if not lines:
            raise SlurmConfigError("the file is empty", where=name, expected=_EXAMPLE)
        where, first = lines[0]
        if _DUMP.match(first):
            self._dump(lines)
        elif "|" in first:
            if not _is_header(first):
                expected = "a header, such as Cluster|Account|User|Share, or Name|Priority|..."
                raise SlurmConfigError(
                    "the table has no header", where=where, expected=expected, found=f"'{legible(first, WORD)}'"
                )
            self._table(lines)
        elif any(_WORDS.search(line) for _, line in lines):
            self._commands(lines)
        else:
            hint = "Print tables with the option -P (--parsable2) of sacctmgr."
            raise SlurmConfigError(
                "the file is not of sacctmgr",
                where=where,
                expected=_EXAMPLE,
                found=f"'{legible(first, WORD)}'",
                hint=hint,
            )

    def _dump(self, lines: list[tuple[str, str]]) -> None:
        parent, mine = ROOT, True
        for where, line in lines:
            found = _DUMP.match(line)
            parts = [] if found is None else list(_parts(found[2]))
            if found is None or not parts:
                expected = "Cluster, Parent, Account, User or QOS, then - 'NAME':OPTION=VALUE:..."
                raise SlurmConfigError(
                    "this is no line of a dump", where=where, expected=expected, found=f"'{legible(line, WORD)}'"
                )
            kind = found[1].lower()
            name, *options = parts
            if kind == "cluster":
                mine = not self._cluster or name.lower() == self._cluster or len(lines) == 1
                mine = mine or not any(self._is_cluster(other) for _, other in lines)
            if not mine:
                continue
            pairs = [self._pair(option, where) for option in options]
            if kind == "parent":
                parent = name
            elif kind == "qos":
                self._take(QOS, self._one_qos(name, where), pairs, where)
            elif kind == "cluster":
                self._take(ASSOCIATION, self._association(where, ROOT), pairs, where)
            elif kind == "account":
                settings = self._association(where, name)
                settings["parent"] = parent
                self._take(ASSOCIATION, settings, pairs, where)
            else:
                self._user(name, [parent], pairs, where)

    def _is_cluster(self, line: str) -> bool:
        found = _DUMP.match(line)
        return found is not None and found[1].lower() == "cluster" and self._cluster in found[2].lower()

    def _user(
        self, name: str, accounts: Sequence[str], pairs: list[tuple[str, str]], where: str, *, new: bool = False
    ) -> None:
        """Set options of a user in accounts.

        With ``new``, set them only in accounts that do not have the user yet.
        """
        named = {plain_name(key): value for key, value in pairs}
        partitions = (named.get("partition") or named.get("partitions") or "").split(",")
        default = named.get("defaultaccount") or named.get("defacct") or ""
        for account in accounts:
            for partition in partitions:
                known = (account, name, partition) in self._associations
                if new and known:
                    what = f"{_owner(account, name, partition)} exists already, so sacctmgr changes nothing: use modify"
                    self._warn("add user", what, where)
                    continue
                settings = self._association(where, account, name, partition)
                if default and default == account:
                    settings["is_default"] = True
                self._take(ASSOCIATION, settings, [one for one in pairs if plain_name(one[0]) != "partition"], where)

    def _table(self, lines: list[tuple[str, str]]) -> None:
        header = [cell.strip() for cell in lines[0][1].split("|")]
        plain = [plain_name(cell) for cell in header]
        clusters = (
            {line.split("|")[plain.index("cluster")].strip().lower() for _, line in lines[1:]}
            if ("cluster" in plain)
            else set()
        )
        above: dict[int, str] = {}  # the last account at each depth of an indented table
        for where, line in lines[1:]:
            raw = line.split("|")
            cells = [cell.strip() for cell in raw]
            if len(cells) != len(header):
                raise SlurmConfigError(
                    "a row does not match the header",
                    where=where,
                    expected=f"{len(header)} cells",
                    found=str(len(cells)),
                )
            row = dict(zip(plain, cells, strict=True))
            pairs = [(name, cell) for name, cell in zip(header, cells, strict=True) if name]
            if "name" in row and "account" not in row:
                self._take(QOS, self._one_qos(row["name"], where), pairs, where)
                continue
            if len(clusters) > 1 and self._cluster in clusters and row["cluster"].lower() != self._cluster:
                continue
            user = row.get("user", "")
            settings = self._association(where, row["account"], user, row.get("partition", ""))
            if not user:
                account = raw[plain.index("account")]
                depth = len(account) - len(account.lstrip())
                above = {place: name for place, name in above.items() if place < depth} | {depth: row["account"]}
                parent = row.get("parentname") or row.get("parname") or row.get("parent") or above.get(depth - 1)
                if row["account"] != ROOT:
                    settings["parent"] = parent or ROOT
            skipped = ("partition", "parentname", "parname", "parent")
            self._take(ASSOCIATION, settings, [one for one in pairs if plain_name(one[0]) not in skipped], where)

    def _commands(self, lines: list[tuple[str, str]]) -> None:
        for where, line in lines:
            try:
                words = shlex.split(line, comments=True)
            except ValueError as error:
                raise SlurmConfigError(f"a line cannot be split into words ({error})", where=where) from None
            at = next((place for place, word in enumerate(words) if word.lower() in _VERBS), None)
            if at is None or len(words) < at + 2:
                self._refuse_typo(words, where)
                continue  # a command that shows something, or a shell's own line
            verb, kind = words[at].lower(), _OBJECTS.get(words[at + 1].lower())
            if kind is None:
                what = f"{words[at]} {legible(words[at + 1], WORD)} is not supported"
                raise SlurmConfigError(what, where=where, expected="account, cluster, qos or user")
            self._command(verb, kind, words[at + 2 :], where)

    @staticmethod
    def _refuse_typo(words: list[str], where: str) -> None:
        """Raise SlurmConfigError if an unknown word stands before an object and its name.

        An object is, for example, ``account``.
        """
        lower = [word.lower() for word in words]
        for verb, kind in pairwise(lower[:-1]):
            if kind in _OBJECTS and verb.isalpha() and verb not in (*_IDLE_VERBS, *_OBJECTS, *_SHELL):
                raise SlurmConfigError(
                    "the command is unknown", where=where, expected=", ".join(_VERBS), found=f"'{legible(verb, WORD)}'"
                )

    def _command(self, verb: str, kind: str, words: list[str], where: str) -> None:
        lower = [word.lower() for word in words]
        if verb == "modify":
            if "set" not in lower:
                raise SlurmConfigError("modify lacks 'set'", where=where, expected="modify user NAME set OPTION=VALUE")
            at = lower.index("set")
            chosen, changed = [word for word in words[:at] if word.lower() != "where"], words[at + 1 :]
        else:
            chosen, changed = [word for word in words if word.lower() != "where"], words
        names: list[str] = []
        conditions: dict[str, list[str]] = {}
        for word in chosen:
            key, mark, value = word.partition("=")
            if not mark:
                names += [name for name in word.split(",") if name]
            elif plain_name(key) in ("name", "names", kind):
                names += [name for name in value.split(",") if name]
            else:
                conditions[plain_name(key)] = [name for name in value.split(",") if name]
        own = ("name", "names", kind, "account", "accounts", "cluster", "clusters")
        pairs = [
            self._pair(word, where)
            for word in changed
            if "=" in word and plain_name(word.partition("=")[0].rstrip("+-")) not in own
        ]
        if verb == "modify" and not pairs:
            raise SlurmConfigError("modify sets nothing", where=where, expected="modify user NAME set OPTION=VALUE")
        if verb in ("add", "create") and not names:
            raise SlurmConfigError(f"add {kind} has no name", where=where, expected=f"add {kind} NAME OPTION=VALUE")
        if kind not in ("cluster", "user"):
            self._require(verb, kind, names, where)
        accounts = conditions.get("account") or conditions.get("accounts") or []
        default = conditions.get("defaultaccount") or conditions.get("defacct") or []
        if verb in ("add", "create") and kind != "qos":
            new = (ROOT, "", "") not in self._associations
            root = self._association(where, ROOT)
            if new and self._normal:
                root["qos"] = (NORMAL,)  # as slurmdbd creates a cluster
        if verb in ("delete", "remove"):
            self._remove(kind, names, accounts, where)
        elif kind == "qos":
            if verb != "modify":
                names = self._new(kind, names, lambda name: name.lower() in self._qos or self._is_normal(name), where)
            for name in names or (list(self._qos) if verb == "modify" else []):
                self._take(QOS, self._one_qos(name, where), pairs, where)
        elif kind == "cluster":
            self._take(ASSOCIATION, self._association(where, ROOT), pairs, where)
        elif kind == "account":
            self._accounts(verb, names, pairs, where)
        elif verb == "modify":
            self._modified_users(names, accounts, pairs, where)
        else:
            if not accounts and not default:
                raise SlurmConfigError("a new user has no account", where=where, expected="Account=NAME")
            for name in names:
                self._user(name, list(dict.fromkeys([*accounts, *default])), pairs, where, new=True)

    def _require(self, verb: str, kind: str, names: Sequence[str], where: str) -> None:
        """Raise SlurmConfigError if a command changes an unknown account or QOS."""
        if verb not in ("modify", "delete", "remove"):
            return
        known = {NORMAL, *self._qos} if kind == "qos" else {account for account, _, _ in self._associations} | {ROOT}
        strange = next((name for name in names if (name.lower() if kind == "qos" else name) not in known), None)
        if strange is not None:
            hint = did_you_mean(strange, sorted(known)[:1000])
            raise SlurmConfigError(
                f"there is no {kind} {shown(strange)}", where=where, hint=hint if hint.startswith("Did") else None
            )

    def _remove(self, kind: str, names: Sequence[str], accounts: Sequence[str], where: str) -> None:
        """Delete QOS, users, or accounts with their users and the accounts below them."""
        if not names or kind == "cluster":
            raise SlurmConfigError(
                f"this deletes no single {kind}", where=where, expected="delete account, qos or user NAME"
            )
        if kind == "qos":
            gone = {name.lower() for name in names}
            self._normal = self._normal and NORMAL not in gone
            for name in gone:
                self._qos.pop(name, None)
            for settings in (*self._associations.values(), *self._qos.values()):
                for field in ("qos", "preempt"):
                    if field in settings:
                        settings[field] = tuple(one for one in settings[field] if one not in gone)
            return
        below = set(names) if kind == "account" else set()
        for _ in self._associations if below else ():
            more = {key[0] for key, one in self._associations.items() if not key[1] and one.get("parent") in below}
            if more <= below:
                break
            below |= more
        for key in list(self._associations):
            mine = key[1] in names and (not accounts or key[0] in accounts)
            if key[0] in below or (kind == "user" and mine):
                del self._associations[key]

    def _is_normal(self, name: str) -> bool:
        return self._normal and name.lower() == NORMAL

    def _new(self, kind: str, names: Sequence[str], exists: Callable[[str], bool], where: str) -> list[str]:
        """Return the names that do not exist yet.

        Warn about the others: for these, ``sacctmgr add`` changes nothing.
        """
        for name in filter(exists, names):
            self._warn(f"add {kind}", f"{name} exists already, so sacctmgr changes nothing: use modify", where)
        return [name for name in names if not exists(name)]

    def _accounts(self, verb: str, names: list[str], pairs: list[tuple[str, str]], where: str) -> None:
        known = [account for account, user, _ in self._associations if not user and account != ROOT]
        if verb != "modify":
            names = self._new("account", names, lambda name: (name, "", "") in self._associations, where)
        for name in names or (known if verb == "modify" else []):
            settings = self._association(where, name)
            if verb != "modify":
                settings["parent"] = ROOT
            self._take(ASSOCIATION, settings, pairs, where)

    def _modified_users(self, names: list[str], accounts: list[str], pairs: list[tuple[str, str]], where: str) -> None:
        chosen = [
            settings
            for (account, user, _), settings in self._associations.items()
            if user and (not names or user in names) and (not accounts or account in accounts)
        ]
        if names and not chosen:
            what = f"there is no user {shown(', '.join(names))}"
            raise SlurmConfigError(
                what + (f" of account {shown(', '.join(accounts))}" if accounts else ""), where=where
            )
        for settings in chosen:
            self._take(ASSOCIATION, settings, pairs, where)

    def _one_qos(self, name: str, where: str) -> dict[str, Any]:
        self._qos_places[name.lower()] = where
        return self._qos.setdefault(name.lower(), {})

    def _association(self, where: str, account: str, user: str = "", partition: str = "") -> dict[str, Any]:
        key = (account, user, partition)
        self._places.setdefault(key, where)
        return self._associations.setdefault(key, {})

    def _take(self, kind: str, settings: dict[str, Any], pairs: list[tuple[str, str]], where: str) -> None:
        for name, value in pairs:
            if value or name[-1:] in "+-":
                self._options.set(kind, settings, name, value, where)

    def _pair(self, option: str, where: str) -> tuple[str, str]:
        name, mark, value = option.partition("=")
        if not mark:
            raise SlurmConfigError(
                "an option has no value", where=where, expected="OPTION=VALUE", found=f"'{legible(option, WORD)}'"
            )
        return name.strip(), value.strip().strip("'\"")


def _owner(account: str, user: str, partition: str) -> str:
    """Return a text that names an association, for messages."""
    owner = f"user {user} in account {account}" if user else f"account {account}"
    return f"{owner} for partition {partition}" if partition else owner


def _parts(text: str) -> Iterator[str]:
    """Yield the fields of a line of a dump, which are separated by colons.

    Colons inside quotes do not separate fields. Yield nothing if a quote is not closed.
    """
    if text.count("'") % 2:
        return
    for part in re.findall(r"(?:[^:']|'[^']*')+", text):
        plain = part.strip()
        yield plain[1:-1] if plain[:1] == plain[-1:] == "'" and len(plain) > 1 else plain

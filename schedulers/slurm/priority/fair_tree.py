"""Fair Tree: Slurm's fairshare factors by the ranks of users."""

from math import inf

import numpy as np
from numpy.typing import NDArray

from pipistrelle.schedulers.slurm.accounts.records import Accounts


class FairTree:
    """Computes the fairshare factors of all users; see `update`.

    The associations at one depth below root are computed together, as arrays.

    Source: Slurm's documentation, "Fair Tree Fairshare Algorithm".
    """

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts
        table = accounts.associations
        self._parent = np.array([one.parent for one in table], np.intp)
        self._is_user = np.array([one.is_user for one in table], bool)
        self._inherits = np.array([one.shares == inf for one in table], bool)
        #: the associations at each depth below root
        self._depths: list[NDArray[np.intp]] = []
        above = [accounts.root] if accounts.root >= 0 else []
        while below := [at for one in above for at in table[one].children]:
            self._depths.append(np.array(below, np.intp))
            above = below
        users = np.array([at for depth in self._depths for at in depth if table[at].is_user], np.intp)
        self._users = users
        #: for each depth, the ancestor of each of `_users` there, or the user itself; -1 below the user
        self._lines: list[NDArray[np.intp]] = []
        depth_of = {int(at): depth for depth, some in enumerate(self._depths) for at in some}
        line = users
        for depth in range(len(self._depths) - 1, -1, -1):
            deep = np.array([at >= 0 and depth_of[int(at)] >= depth for at in line], bool)
            self._lines.insert(0, np.where(deep, line, -1))
            line = np.where(deep & (depth > 0), self._parent[line], line)
        self._norm = self._norm_shares()

    def _norm_shares(self) -> NDArray[np.float64]:
        """Return each association's fraction of the shares of its parent's children.

        An association that uses its parent's share gets the parent's value.
        """
        table = self._accounts.associations
        norm = np.zeros(len(table))
        totals = {
            above.index: sum(table[at].shares for at in above.children if table[at].shares != inf) for above in table
        }
        for depth in self._depths:
            for at in depth:
                one = table[at]
                total = totals[one.parent]
                norm[at] = norm[one.parent] if one.shares == inf else one.shares / total if total else 0.0
        return norm

    def update(self) -> None:
        """Set ``level_fs`` of all associations and ``factor`` of the users.

        Among the children of an account, a child's level factor is its fraction of all children's shares, divided by
        its fraction of all children's usage. Users are ranked depth first; the best of n users has factor 1, the worst
        1/n. Users with equal level factors get the same rank. The children of accounts with equal level factors are
        ranked together.
        """
        for depth in self._depths:
            self._levels(depth)
        if self._depths:
            self._rank()

    def _levels(self, depth: NDArray[np.intp]) -> None:
        """Set the level factors of the associations at one depth.

        Those of the associations above must be set already.
        """
        accounts = self._accounts
        above = self._parent[depth]
        whole = accounts.usage[above]
        used = np.divide(accounts.usage[depth], whole, out=np.zeros(len(depth)), where=whole > 0)
        with np.errstate(over="ignore"):
            level = np.divide(self._norm[depth], used, out=np.full(len(depth), inf), where=used > 0)
        inherits = self._inherits[depth]
        accounts.norm_shares[depth] = self._norm[depth]
        accounts.effective[depth] = used
        accounts.level_fs[depth] = np.where(inherits, accounts.level_fs[above], level)

    def _rank(self) -> None:
        """Rank the users, and set their fairshare factors from their ranks.

        Associations whose children are ranked together form a group. Users with equal level factors form a group, too.
        At each depth the groups are numbered in the order of their ranks.
        """
        count = len(self._parent)
        group = np.full(count + 1, -1)  # the last one stands for "below the user"
        #: {group: whether its first user has the rank of the user before it}
        tied = np.zeros(1, bool)
        group[self._accounts.root] = 0
        same = np.zeros(count, bool)
        for depth in self._depths:
            above, level, is_account = group[self._parent[depth]], self._accounts.level_fs[depth], ~self._is_user[depth]
            order = np.lexsort((is_account, -level, above))
            above, level, is_account = above[order], level[order], is_account[order]
            first = np.append(True, above[1:] != above[:-1])
            equal = np.append(False, level[1:] == level[:-1]) & ~first
            begins = ~equal | np.append(True, is_account[1:] != is_account[:-1])
            number = np.cumsum(begins) - 1
            group[depth[order]] = number
            follows = np.where(first, tied[above], equal)
            same[depth[order]] = follows
            tied = follows[begins]
        order = np.lexsort([group[line] for line in reversed(self._lines)])
        ranked = self._users[order]
        places = np.maximum.accumulate(np.where(same[ranked], 0, np.arange(len(ranked))))
        users = self._accounts.users
        self._accounts.factor[ranked] = (users - places) / max(1, users)

"""Classic fairshare: factors of associations by Slurm's formula."""

from math import inf, log
from typing import Final

from pipistrelle.schedulers.slurm.accounts.records import UNKNOWN, Accounts, Association

#: how quickly an account's own ratio of usage to shares loses its effect as the ratio of its parent leaves 1
_STEEPNESS: Final = 5.0


class ClassicFairshare:
    """Computes fairshare factors by Slurm's classic formula: 2^(-usage/share/damping).

    ``usage`` is an association's effective usage: own + part * (parent - own). Here ``own`` is its own usage,
    ``parent`` its parent's effective usage, and ``part`` its shares divided by the shares of all children of its
    parent. Below root, only the own usage counts. With ``Fairshare=parent``, share and effective usage are the
    parent's.

    At the begin of a period, slurmctld computes the effective usage of all accounts. It computes that of a user when it
    first needs the user's factor in this period. Until the next period, it uses these values again.

    Args:
        damping: Slurm's setting ``FairShareDampeningFactor``.
        depth_oblivious: combine the ratios of usage to shares of an account and of its parent instead, so that
            the depth of an account has less effect (PriorityFlags=DEPTH_OBLIVIOUS).
    """

    def __init__(self, accounts: Accounts, damping: int = 1, *, depth_oblivious: bool = False) -> None:
        self._accounts = accounts
        self._damping = max(1, damping)
        self._oblivious = depth_oblivious
        #: for each association, the account whose share it divides, and those that divide its own share
        self._above, self._below = accounts.sharing()
        #: for each association, its shares divided by those of all that divide the same share; -1: all these are 0
        self._portion = [-1.0] * len(self._above)
        if accounts.root >= 0:
            accounts.norm_shares[accounts.root] = accounts.effective[accounts.root] = 1.0
            self._prepare(accounts.root)
            self.begin()

    def _prepare(self, above: int) -> None:
        """Set the shares of all associations that divide an account's share."""
        table = self._accounts.associations
        total = sum(table[at].shares for at in self._below[above] if table[at].shares != inf)
        for at in self._below[above]:
            one = table[at]
            if one.shares != inf and total:
                self._portion[at] = one.shares / total
            portion = 1.0 if one.shares == inf else max(0.0, self._portion[at])
            one.norm_shares = portion * table[above].norm_shares
            self._prepare(at)

    def begin(self) -> None:
        """Begin a period: compute the factors of all accounts, and forget the effective usage of all users."""
        if self._accounts.root >= 0:
            self._begin(self._accounts.root)

    def _begin(self, above: int) -> None:
        for at in self._below[above]:
            if self._accounts.associations[at].is_user:
                self._accounts.effective[at] = UNKNOWN
            else:
                self._compute(at)
                self._begin(at)

    def is_known(self, at: int) -> bool:
        """Return whether an association's factor in this period was computed already."""
        one = self._accounts.associations[at]
        return one.shares == inf or one.effective != UNKNOWN

    def need(self, at: int) -> None:
        """Compute an association's factor from the present usage, unless it was computed in this period."""
        one = self._accounts.associations[at]
        if one.shares == inf:
            above = self._accounts.associations[self._above[at]]
            one.effective = above.effective
            one.factor = one.level_fs = self._factor(above)
        elif one.effective == UNKNOWN:
            self._compute(at)

    def _compute(self, at: int) -> None:
        table = self._accounts.associations
        one, root = table[at], table[self._accounts.root]
        one.norm_usage = min(1.0, one.usage / root.usage) if root.usage > 0 else 0.0
        above = table[self._above[at]]
        if above is root:  # at the first level nothing is inherited
            one.effective = one.norm_usage
        elif one.shares == inf:
            one.effective = above.effective
        elif self._oblivious:
            one.effective = self._combined(one, above)
        elif self._portion[at] < 0:
            one.effective = above.effective
        else:
            one.effective = one.norm_usage + (above.effective - one.norm_usage) * self._portion[at]
        one.factor = one.level_fs = self._factor(one)

    def _combined(self, one: Association, above: Association) -> float:
        """Return an association's effective usage, from the ratios of usage to shares of its parent and itself."""
        if not (one.norm_shares and above.norm_shares and above.effective and one.norm_usage):
            return one.norm_usage
        table = self._accounts.associations
        # The usage of brothers and sisters is what it was when it was last needed.
        whole = sum(table[at].norm_usage for at in self._below[above.index] if table[at].shares != inf)
        parent = above.effective / above.norm_shares
        own = one.norm_usage / one.norm_shares / (whole / above.norm_shares)
        weight = 1.0 if log(parent) * log(own) >= 0 else 1 / (1 + (_STEEPNESS * log(parent)) ** 2)
        return float(parent * own**weight * one.norm_shares)

    def _factor(self, one: Association) -> float:
        if one.norm_shares <= 0:
            return 0.0
        exponent = one.effective / one.norm_shares / self._damping
        return float(2.0**-exponent) if exponent < 1000 else 0.0

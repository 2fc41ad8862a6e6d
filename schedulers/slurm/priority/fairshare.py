"""Fairshare factors of associations: Slurm's Fair Tree and its classic formula."""

from math import inf

from pipistrelle.schedulers.slurm.accounts.records import Accounts, Association


def fair_tree(accounts: Accounts) -> None:
    """Set ``level_fs`` of all associations and ``factor`` of the users, by Fair Tree.

    Among the children of an account, a child's level factor is its fraction of all children's shares, divided by its
    fraction of all children's usage. Users are ranked depth first; the best of n users has factor 1, the worst 1/n.
    Users with equal level factors get the same rank. The children of accounts with equal level factors are ranked
    together.

    Source: Slurm's documentation, "Fair Tree Fairshare Algorithm".
    """
    if accounts.root < 0:
        return
    _levels(accounts, accounts.associations[accounts.root])
    walk = _Ranking(accounts)
    walk.rank_below([accounts.associations[accounts.root]])


def _levels(accounts: Accounts, above: Association) -> None:
    """Set the level factors below an association."""
    table, whole = accounts.associations, above.usage
    children = [table[at] for at in above.children]
    total = sum([one.shares for one in children if one.shares != inf])
    for one in children:
        one.effective = used = one.usage / whole if whole > 0 else 0.0
        if one.shares == inf:  # the account's own place
            one.level_fs = above.level_fs
            one.norm_shares = above.norm_shares
        else:
            one.norm_shares = one.shares / total if total else 0.0
            one.level_fs = inf if used <= 0 else one.norm_shares / used if one.norm_shares > 0 else 0.0
        if one.children:
            _levels(accounts, one)


def _place(one: Association) -> tuple[float, bool]:
    return -one.level_fs, not one.is_user


class _Ranking:
    def __init__(self, accounts: Accounts) -> None:
        self.associations = accounts.associations
        self.users = max(1, accounts.users)
        #: rank without ties, and with ties
        self.next = self.rank = accounts.users

    def rank_below(self, above: list[Association], *, tied: bool = False) -> None:
        """Rank the children of some associations together.

        Args:
            tied: whether the first child gets the rank of the user that was ranked before it.
        """
        table = self.associations
        children = [table[at] for one in above for at in one.children]
        if len(children) > 1:
            children.sort(key=_place)
        at = 0
        while at < len(children):
            one = children[at]
            same = children[at - 1].level_fs == one.level_fs if at else tied
            if one.is_user:
                if not same:
                    self.rank = self.next
                one.factor = self.rank / self.users
                self.next -= 1
                at += 1
            else:
                end = at
                while end < len(children) and children[end].level_fs == one.level_fs:
                    end += 1
                self.rank_below(children[at:end], tied=same)
                at = end


def classic(accounts: Accounts, damping: int = 1) -> None:
    """Set ``factor`` of all associations to 2^(-usage/share/damping), Slurm's classic formula.

    ``usage`` is an association's effective usage: own + part * (parent - own). Here ``own`` is its own usage,
    ``parent`` its parent's effective usage, and ``part`` its shares divided by the shares of all children of its
    parent.

    Args:
        damping: Slurm's setting ``FairShareDampeningFactor``.
    """
    if accounts.root < 0:
        return
    root = accounts.associations[accounts.root]
    root.norm_shares, root.effective = 1.0, 1.0

    def below(above: Association) -> None:
        children = [accounts.associations[at] for at in above.children]
        total = sum(one.shares for one in children if one.shares != inf)
        for one in children:
            own = one.usage / root.usage if root.usage > 0 else 0.0
            if one.shares == inf:
                one.norm_shares, one.effective = above.norm_shares, above.effective
            else:
                portion = one.shares / total if total else 0.0
                one.norm_shares = portion * above.norm_shares
                # At the first level nothing is inherited.
                one.effective = own if above is root else own + (above.effective - own) * portion
            one.factor = _two_to_minus(one.effective, one.norm_shares, damping)
            one.level_fs = one.factor
            below(one)

    below(root)


def _two_to_minus(usage: float, shares: float, damping: int) -> float:
    if shares <= 0:
        return 0.0
    exponent = usage / shares / max(1, damping)
    return float(2.0**-exponent) if exponent < 1000 else 0.0

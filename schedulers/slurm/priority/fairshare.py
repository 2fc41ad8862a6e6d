"""Classic fairshare: factors of associations by Slurm's formula."""

from math import inf, log
from typing import Final

from pipistrelle.schedulers.slurm.accounts.records import Accounts, Association

#: how quickly an account's own ratio of usage to shares loses its effect as the ratio of its parent leaves 1
_STEEPNESS: Final = 5.0


def classic(accounts: Accounts, damping: int = 1, *, depth_oblivious: bool = False) -> None:
    """Set ``factor`` of all associations by Slurm's classic formula.

    The formula is 2^(-usage/share/damping). ``usage`` is an association's effective usage: own + part * (parent - own).
    Here ``own`` is its own usage, ``parent`` its parent's effective usage, and ``part`` its shares divided by the
    shares of all children of its parent. Below root, only the own usage counts. With ``Fairshare=parent``, share and
    effective usage are the parent's.

    Args:
        damping: Slurm's setting ``FairShareDampeningFactor``.
        depth_oblivious: combine the ratios of usage to shares of an account and of its parent instead, so that
            the depth of an account has less effect (PriorityFlags=DEPTH_OBLIVIOUS).
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
                if above is root:  # at the first level nothing is inherited
                    one.effective = own
                elif depth_oblivious:
                    one.effective = _oblivious(one, above, portion) * one.norm_shares
                else:
                    one.effective = own + (above.effective - own) * portion
            one.factor = _two_to_minus(one.effective, one.norm_shares, damping)
            one.level_fs = one.factor
            below(one)

    below(root)


def _oblivious(one: Association, above: Association, portion: float) -> float:
    """Return the ratio of effective usage to shares of an association, from its parent's ratio and its own.

    Args:
        portion: its shares divided by the shares of all children of its parent.
    """
    if not above.norm_shares or not portion or not above.usage:
        return 0.0
    parent = above.effective / above.norm_shares
    own = one.usage / above.usage / portion
    if parent <= 0 or own <= 0:
        return 0.0
    weight = 1.0 if log(parent) * log(own) >= 0 else 1 / (1 + (_STEEPNESS * log(parent)) ** 2)
    return float(parent * own**weight)


def _two_to_minus(usage: float, shares: float, damping: int) -> float:
    if shares <= 0:
        return 0.0
    exponent = usage / shares / max(1, damping)
    return float(2.0**-exponent) if exponent < 1000 else 0.0

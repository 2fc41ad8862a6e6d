"""Fair Tree, computed with arrays, against a plain walk of the tree."""

from math import inf

from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.schedulers.slurm.accounts.records import Accounts, Association
from pipistrelle.schedulers.slurm.config.accounts import AssociationSettings
from pipistrelle.schedulers.slurm.config.settings import SlurmConfig
from pipistrelle.schedulers.slurm.priority.fair_tree import FairTree

SHARES = st.sampled_from([0.0, 1.0, 1.0, 2.0, 3.0, inf])
USAGE = st.sampled_from([0.0, 0.0, 1.0, 1.0, 2.0, 5.0, 7.3])


def ranked(accounts: Accounts) -> tuple[dict[int, float], dict[int, float]]:
    """Return ({user: factor}, {association: level factor}), by walking the tree."""
    table = accounts.associations
    levels = {accounts.root: inf}
    factors: dict[int, float] = {}
    rank = accounts.users

    def set_levels(above: Association) -> None:
        children = [table[at] for at in above.children]
        total = sum(one.shares for one in children if one.shares != inf)
        for one in children:
            used = one.usage / above.usage if above.usage > 0 else 0.0
            norm = one.shares / total if total else 0.0
            levels[one.index] = inf if used <= 0 else norm / used
            if one.shares == inf:
                levels[one.index] = levels[above.index]
            set_levels(one)

    def norm_of(one: Association) -> float:
        if one.parent < 0:
            return 0.0
        above = table[one.parent]
        total = sum(table[at].shares for at in above.children if table[at].shares != inf)
        return norm_of(above) if one.shares == inf else one.shares / total if total else 0.0

    def rank_below(above: list[Association], *, tied: bool) -> None:
        nonlocal rank
        children = sorted(
            (table[at] for one in above for at in one.children), key=lambda one: (-levels[one.index], not one.is_user)
        )
        at = 0
        while at < len(children):
            level = levels[children[at].index]
            same = levels[children[at - 1].index] == level if at else tied
            if children[at].is_user:
                rank = rank if same else accounts.users - len(factors)
                factors[children[at].index] = rank / accounts.users
                at += 1
            else:
                equal = [one for one in children[at:] if levels[one.index] == level]
                rank_below(equal, tied=same)
                at += len(equal)

    set_levels(table[accounts.root])
    rank_below([table[accounts.root]], tied=False)
    assert all(one.norm_shares == norm_of(one) for one in table)
    return factors, levels


@settings(deadline=None)
@given(
    accounts=st.lists(st.tuples(st.integers(0, 8), SHARES), max_size=8),
    users=st.lists(st.tuples(st.integers(0, 8), SHARES), max_size=12),
    usage=st.lists(st.lists(USAGE, min_size=12, max_size=12), min_size=1, max_size=2),
)
def test_fair_tree_equals_a_walk_of_the_tree(
    accounts: list[tuple[int, float]], users: list[tuple[int, float]], usage: list[list[float]]
) -> None:
    """Factors and level factors are equal to the last bit, with ties, inherited shares and accounts without users."""
    people = [AssociationSettings(account="root")]
    names = ["root"]
    for above, shares in accounts:
        names.append(f"account{len(names)}")
        people.append(AssociationSettings(account=names[-1], parent=names[above % (len(names) - 1)], shares=shares))
    for number, (above, shares) in enumerate(users):
        people.append(AssociationSettings(account=names[above % len(names)], user=f"user{number}", shares=shares))
    table = Accounts(SlurmConfig(associations=tuple(people)))
    tree = FairTree(table)
    for amounts in usage:
        for number, one in enumerate(one for one in table.associations if one.is_user):
            for up in table.line(one.index):
                up.usage += amounts[number]
        tree.update()
        factors, levels = ranked(table)
        assert {one.index: one.factor for one in table.associations if one.is_user} == factors
        assert {one.index: one.level_fs for one in table.associations} == levels

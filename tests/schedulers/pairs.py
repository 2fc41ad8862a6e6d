"""Pairs of an order and a backfill rule for tests that hold for all of them."""

import pytest

from pipistrelle.schedulers.catalogue.names import PARTS

ORDERS, RULES = list(PARTS["order"]), list(PARTS["backfill"])
#: the first pairs have each order and each rule at least once; the others belong to the slow tests
QUICK = {(ORDERS[number % len(ORDERS)], RULES[number]) for number in range(len(RULES))}
PAIRS = [
    pytest.param(order, rule, marks=[] if (order, rule) in QUICK else pytest.mark.slow)
    for order in ORDERS
    for rule in RULES
]

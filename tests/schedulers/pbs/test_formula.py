"""Formulas: their values, against Python's own arithmetic, and invalid ones."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.schedulers.pbs.formula import Formula
from pipistrelle.schedulers.policy.errors import FormulaError

NAMES = ("ncpus", "queue_priority", "walltime")
#: (text, precedence, its function of values); an undefined value raises
Node = tuple[str, Callable[[dict[str, float]], float]]


def undefined(value: float) -> float:
    """Return the value; raise if it is none."""
    if math.isnan(value):
        raise ArithmeticError
    return value


def power(a: float, b: float) -> float:
    """Return a to the b; raise where that is no real number."""
    value = a**b
    if isinstance(value, complex):
        raise ArithmeticError
    return float(value)


def binary(sign: str, do: Callable[[float, float], Any]) -> Callable[[Node, Node], Node]:
    """Return what makes a node of two."""
    return lambda a, b: (f"({a[0]}) {sign} ({b[0]})", lambda v: undefined(float(do(a[1](v), b[1](v)))))


def choice(a: Node, b: Node, c: Node) -> Node:
    """Return a if b else c."""
    return f"({a[0]}) if ({b[0]}) else ({c[0]})", lambda v: a[1](v) if b[1](v) else c[1](v)


BINARY = [
    binary("+", lambda a, b: a + b),
    binary("-", lambda a, b: a - b),
    binary("*", lambda a, b: a * b),
    binary("/", lambda a, b: a / b),
    binary("//", lambda a, b: a // b),
    binary("%", lambda a, b: a % b),
    binary("**", power),
    binary("<", lambda a, b: a < b),
    binary("<=", lambda a, b: a <= b),
    binary("==", lambda a, b: a == b),
    binary("!=", lambda a, b: a != b),
    lambda a, b: (f"({a[0]}) and ({b[0]})", lambda v: a[1](v) and b[1](v)),
    lambda a, b: (f"({a[0]}) or ({b[0]})", lambda v: a[1](v) or b[1](v)),
    lambda a, b: (f"max({a[0]}, {b[0]})", lambda v: max(a[1](v), b[1](v))),
    lambda a, b: (f"min({a[0]},{b[0]})", lambda v: min(a[1](v), b[1](v))),
]
UNARY: list[Callable[[Node], Node]] = [
    lambda a: (f"-({a[0]})", lambda v: -a[1](v)),
    lambda a: (f"not ({a[0]})", lambda v: float(not a[1](v))),
    lambda a: (f"sqrt({a[0]})", lambda v: math.sqrt(a[1](v))),
    lambda a: (f"floor({a[0]})", lambda v: float(np.floor(a[1](v)))),
    lambda a: (f"abs({a[0]})", lambda v: abs(a[1](v))),
    lambda a: (f"log({a[0]})", lambda v: float(np.log(a[1](v))) if a[1](v) > 0 else undefined(math.nan)),
]
leaves: st.SearchStrategy[Node] = st.one_of(
    st.sampled_from([0.0, 1.0, 2.0, 0.5, 3.0, 1000.0]).map(lambda number: (repr(number), lambda v: number)),
    st.sampled_from(NAMES).map(lambda name: (name, lambda v: v[name])),
)
trees = st.recursive(
    leaves,
    lambda below: st.one_of(
        st.builds(lambda make, a, b: make(a, b), st.sampled_from(BINARY), below, below),
        st.builds(lambda make, a: make(a), st.sampled_from(UNARY), below),
        st.builds(choice, below, below, below),
    ),
    max_leaves=12,
)


@settings(max_examples=400, database=None)
@given(tree=trees, lines=st.lists(st.tuples(*[st.sampled_from([0.0, 1.0, -2.0, 7.5, 60.0])] * 3), max_size=4))
def test_formula_equals_pythons_arithmetic(tree: Node, lines: list[tuple[float, ...]]) -> None:
    """Values equal those of the tree, line by line; if Python raises, the value is 0."""
    text, evaluate = tree
    expected = []
    for line in lines:
        try:
            with np.errstate(all="ignore"):
                expected.append(undefined(float(evaluate(dict(zip(NAMES, line, strict=True))))))
        except (ArithmeticError, ValueError):
            expected.append(0.0)
    columns = {name: np.array([line[at] for line in lines], dtype=float) for at, name in enumerate(NAMES)}
    found = Formula(text, NAMES).values(columns, len(lines))

    assert found.shape == (len(lines),)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7.0),
        ("2 ** 3 ** 2", 512.0),
        ("-2 ** 2", -4.0),
        ("2 ** -1", 0.5),
        ("7 - 2 - 1", 4.0),
        ("7 // 2 % 2", 1.0),
        ("-7 % 3", 2.0),
        ("1 if 0 else 2 if 0 else 3", 3.0),
        ("not 1 == 2", 1.0),
        ("0 < 1 <= 1", 1.0),
        ("3 > 2 > 1", 1.0),
        ("1 < 2 == 1", 0.0),
        ("0 or 5 and 7", 7.0),
        ("+.5e1", 5.0),
        ("log(8, 2)", math.log(8, 2)),
        ("pow(2, 10)", 1024.0),
        ("max(1, 2, 3) - min(4, 5, 6)", -1.0),
        ("pi + e", math.pi + math.e),
        ("1/0", 0.0),
        ("1 if 1 else 1/0", 1.0),
        ("1 + 1/0", 0.0),
        ("min(1, 1/0)", 0.0),
        ("sqrt(-1)", 0.0),
        ("10.0 ** 400", 0.0),
        ("exp(1000)", 0.0),
        ("0 ** -1", 0.0),
        ("1 ** log(0)", 0.0),
        ("(0/0) ** 0", 0.0),
        ("1000*2 + 500/1000 + 864000/864000", 2001.5),
    ],
)
def test_precedence_and_undefined_values(text: str, value: float) -> None:
    """Operators bind as in Python; an undefined value is 0, unless a conditional skips it."""
    assert Formula(text, ()).values({}, 2).tolist() == pytest.approx([value, value], rel=1e-15)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "formula, column 1: the formula is empty: found the end."),
        ("1 +", "column 4: a value is missing: expected a number, a name or '(', found the end."),
        ("1 2", "column 3: unexpected text after the formula: expected an operator or the end, found '2'."),
        ("(1", "column 3: a parenthesis is not closed: expected ')', found the end."),
        ("1 if 2", "column 7: 'if' without 'else': expected 'else', found the end."),
        ("ncpu * 2", "column 1: unknown name: found 'ncpu'. Did you mean 'ncpus'?"),
        ("mem", "column 1: this name has no value here: found 'mem'. not told."),
        ("sqr(4)", "column 1: unknown function: found 'sqr'. Did you mean 'sqrt'?"),
        ("sqrt(1, 2)", "the function has 2 arguments: expected 1 argument, found 'sqrt'."),
        ("max(1)", "the function has 1 arguments: expected 2 or more arguments, found 'max'."),
        ("log()", "the function has 0 arguments: expected 1 or 2 arguments, found 'log'."),
        ("__import__('os')", "column 12: unknown character: found '''."),
        ("ncpus.real", "column 6: unknown character: found '.'."),
        ("ncpus = 1", "column 7: unknown character: found '='. '==' compares."),
        ("ncpus ^ 2", "column 7: unknown character: found '^'. '**' is a power."),
        ("NCPUS * 2", "column 1: unknown name: found 'NCPUS'. Did you mean 'ncpus'?"),
        ("Sqrt(4)", "column 1: unknown function: found 'Sqrt'. Did you mean 'sqrt'?"),
        ("\u001b", "unknown character: found '?'"),
        ("1 if ncpus lambda", "column 12: 'if' without 'else': expected 'else', found 'lambda'."),
        ("(" * 5000, "the formula is too long: expected at most 4000 characters, found 5000."),
        ("(" * 3000, "the formula is nested too deep"),
        ("-" * 3000 + "1", "the formula is nested too deep"),
        ("2" + "**2" * 1000, "the formula is nested too deep"),
        ("not " * 900 + "1", "the formula is nested too deep"),
    ],
)
def test_invalid_formula_is_rejected(text: str, says: str) -> None:
    """With the column, the expected and the actual text."""
    with pytest.raises(FormulaError) as caught:
        Formula(text, NAMES, unknown={"mem": "not told."})
    assert says in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_long_formula_is_no_deep_one() -> None:
    """A sum of two thousand terms is one loop."""
    assert Formula("+".join(["1"] * 2000), ()).values({}, 1).tolist() == [2000.0]


@given(text=st.text(max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    """No exception other than FormulaError is raised."""
    try:
        formula = Formula(text, NAMES)
    except FormulaError:
        return
    assert formula.values(dict.fromkeys(NAMES, 1.0), 3).shape == (3,)

"""Parse and evaluate PBS's formulas over columns of numbers.

No code is executed. The grammar below goes from the loosest to the tightest binding. All values are doubles. A
comparison gives 1 or 0. Every value except 0 is true::

    formula    = choice
    choice     = either [ "if" either "else" choice ]
    either     = both { "or" both }
    both       = negation { "and" negation }
    negation   = "not" negation | comparison
    comparison = sum { ("<" | "<=" | ">" | ">=" | "==" | "!=") sum }
    sum        = product { ("+" | "-") product }
    product    = sign { ("*" | "/" | "//" | "%") sign }
    sign       = ("+" | "-") sign | power
    power      = atom [ "**" sign ]
    atom       = NUMBER | NAME | NAME "(" choice { "," choice } ")" | "(" choice ")"

Precedence, association and chained comparisons (``0 < ncpus <= 64``) are Python's, because PBS evaluates its formulas
in Python.
"""

import re
from collections.abc import Callable, Collection, Mapping
from typing import Final, NamedTuple

import numpy as np

from pipistrelle.protocol.base.errors import did_you_mean, printable
from pipistrelle.schedulers.pbs.formula_values import (
    COMPARISONS,
    CONSTANTS,
    FUNCTIONS,
    PRODUCTS,
    SUMS,
    Floats,
    chain,
    choose,
    compare,
    power,
)
from pipistrelle.schedulers.policy.errors import FormulaError

#: most characters of a formula
LONGEST: Final = 4000
_DEEPEST: Final = 60
_TOKEN: Final = re.compile(
    r"(?P<space>\s+)|(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)|(?P<name>[A-Za-z_][A-Za-z_0-9]*)"
    r"|(?P<sign>\*\*|//|<=|>=|==|!=|[-+*/%()<>,])"
)
#: {operator of other languages: hint}
_INSTEAD: Final = {"=": "'==' compares.", "^": "'**' is a power.", "&": "Write 'and'.", "|": "Write 'or'."}
_WORDS: Final = ("if", "else", "or", "and", "not")


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


class _Step(NamedTuple):
    """One operation in the evaluation of a formula, which uses a stack of values.

    The operation either pushes a number or a variable, or removes the last ``takes`` values and pushes what ``do``
    returns for them.
    """

    takes: int
    do: Callable[..., Floats] | None = None
    name: str = ""
    number: float = 0.0


class Formula:
    """A parsed PBS formula.

    Args:
        variables: names that have a value.
        where: name of the text in messages.
        unknown: {name that users may try: why it has no value}.

    Raises:
        FormulaError: with the position, what was expected and what was found.
    """

    def __init__(
        self, text: str, variables: Collection[str], where: str = "formula", unknown: Mapping[str, str] | None = None
    ) -> None:
        self.text = text
        reader = _Reader(text, variables, where, unknown or {})
        self._steps = reader.program()
        #: the variables in the formula, sorted
        self.names: tuple[str, ...] = tuple(sorted({step.name for step in self._steps if step.name}))

    def values(self, columns: Mapping[str, Floats | float], count: int) -> Floats:
        """Return the formula's value for each row, shape (count,), a new array.

        Undefined values (division by zero, root or logarithm of a negative number, overflow of a power) are 0, as in
        PBS.

        Args:
            columns: for each of `names` an array of shape (count,), or one number.
            count: number of rows.
        """
        stack: list[Floats] = []
        with np.errstate(all="ignore"):
            for step in self._steps:
                if step.do is None:
                    stack.append(np.asarray(columns[step.name] if step.name else step.number, dtype=np.float64))
                else:
                    arguments = stack[-step.takes :]
                    del stack[-step.takes :]
                    stack.append(np.asarray(step.do(*arguments)))
        found = np.array(np.broadcast_to(stack[0], (count,)))
        found[np.isnan(found)] = 0.0
        return found


class _Reader:
    def __init__(self, text: str, variables: Collection[str], where: str, unknown: Mapping[str, str]) -> None:
        self._where = where
        self._variables = variables
        self._unknown = unknown
        self._depth = 0
        self._at = 0
        self._steps: list[_Step] = []
        if len(text) > LONGEST:
            raise FormulaError(
                "the formula is too long", where=where, expected=f"at most {LONGEST} characters", found=str(len(text))
            )
        self._tokens = self._split(text)

    def program(self) -> tuple[_Step, ...]:
        """Return the operations that evaluate the whole formula, in order."""
        if self._next.kind == "end":
            raise self._error("the formula is empty", self._next)
        self._choice()
        if self._next.kind != "end":
            raise self._error("unexpected text after the formula", self._next, "an operator or the end")
        return tuple(self._steps)

    def _split(self, text: str) -> list[_Token]:
        tokens, at = [], 0
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                raise FormulaError(
                    "unknown character",
                    where=f"{self._where}, column {at + 1}",
                    found=f"'{printable(text[at])}'",
                    hint=_INSTEAD.get(text[at]),
                )
            kind = found.lastgroup or ""
            if kind != "space":
                word = found.group()
                tokens.append(_Token("sign" if word in _WORDS else kind, word, at))
            at = found.end()
        tokens.append(_Token("end", "", len(text)))
        return tokens

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _take(self, *signs: str) -> str:
        """Skip the next symbol and return it, if it is one of ``signs``; "" otherwise."""
        token = self._next
        if token.kind == "sign" and token.text in signs:
            self._at += 1
            return token.text
        return ""

    def _expect(self, sign: str, what: str) -> None:
        if not self._take(sign):
            raise self._error(what, self._next, f"'{sign}'")

    def _error(self, what: str, token: _Token, expected: str | None = None, hint: str | None = None) -> FormulaError:
        found = f"'{printable(token.text[:40])}'" if token.text else "the end"
        return FormulaError(
            what, where=f"{self._where}, column {token.at + 1}", expected=expected, found=found, hint=hint
        )

    def _do(self, count: int, do: Callable[..., Floats]) -> None:
        self._steps.append(_Step(count, do))

    def _deeper(self, by: int) -> None:
        self._depth += by
        if self._depth > _DEEPEST:
            raise self._error("the formula is nested too deep", self._next)

    def _joined(self, operand: Callable[[], None], signs: Mapping[str, Callable[..., Floats]]) -> None:
        """Parse operands joined by left-associative operators.

        ``signs`` are the operators and their functions.
        """
        operand()
        while sign := self._take(*signs):
            operand()
            self._do(2, signs[sign])

    def _choice(self) -> None:
        self._deeper(1)
        self._either()
        if self._take("if"):
            self._either()
            self._expect("else", "'if' without 'else'")
            self._choice()
            self._do(3, choose)
        self._deeper(-1)

    def _either(self) -> None:
        self._joined(self._both, {"or": lambda a, b: choose(a, a, b)})

    def _both(self) -> None:
        self._joined(self._negation, {"and": lambda a, b: choose(b, a, a)})

    def _negation(self) -> None:
        if self._take("not"):
            self._deeper(1)
            self._negation()
            self._deeper(-1)
            self._do(1, lambda a: compare(np.equal, a, np.zeros(())))
        else:
            self._comparison()

    def _comparison(self) -> None:
        self._sum()
        operators = []
        while sign := self._take(*COMPARISONS):
            operators.append(COMPARISONS[sign])
            self._sum()
        if operators:
            self._do(len(operators) + 1, lambda *values: chain(operators, values))

    def _sum(self) -> None:
        self._joined(self._product, SUMS)

    def _product(self) -> None:
        self._joined(self._sign, PRODUCTS)

    def _sign(self) -> None:
        sign = self._take("+", "-")
        if sign:
            self._deeper(1)
            self._sign()
            self._deeper(-1)
            if sign == "-":
                self._do(1, np.negative)
        else:
            self._power()

    def _power(self) -> None:
        self._atom()
        if self._take("**"):
            self._deeper(1)
            self._sign()
            self._deeper(-1)
            self._do(2, power)

    def _atom(self) -> None:
        token = self._next
        if self._take("("):
            self._choice()
            self._expect(")", "a parenthesis is not closed")
            return
        if token.kind == "number":
            self._at += 1
            self._steps.append(_Step(0, number=float(token.text)))
        elif token.kind == "name":
            self._at += 1
            if self._take("("):
                self._call(token)
            else:
                self._name(token)
        else:
            raise self._error("a value is missing", token, "a number, a name or '('")

    def _name(self, token: _Token) -> None:
        if token.text in self._variables:
            self._steps.append(_Step(0, name=token.text))
        elif token.text in CONSTANTS:
            self._steps.append(_Step(0, number=CONSTANTS[token.text]))
        elif token.text in self._unknown:
            raise self._error("this name has no value here", token, hint=self._unknown[token.text])
        else:
            known = sorted({*self._variables, *CONSTANTS})
            raise self._error("unknown name", token, hint=did_you_mean(token.text.lower(), known))

    def _call(self, token: _Token) -> None:
        if token.text not in FUNCTIONS:
            raise self._error("unknown function", token, hint=did_you_mean(token.text.lower(), sorted(FUNCTIONS)))
        least, most, function = FUNCTIONS[token.text]
        count = 0
        if not self._take(")"):
            count = 1
            self._choice()
            while self._take(","):
                count += 1
                self._choice()
            self._expect(")", "the function's arguments are not closed")
        if not least <= count <= most:
            range_ = str(least) if least == most else f"{least} or more" if most > 2 else f"{least} or {most}"
            raise self._error(f"the function has {count} arguments", token, f"{range_} argument{'s' * (most > 1)}")
        self._do(count, function)

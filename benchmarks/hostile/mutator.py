"""Mutate JSON frames at random, to imitate careless or hostile peers.

The same seed gives the same mutations. A frame is parsed into a tree that can also hold invalid content: duplicate
keys, numbers out of range, fragments that are not JSON. First the tree is changed, then sometimes its bytes.
"""

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hostile.tables import DECISIONS, EVENTS, HELLO_FEATURES, field_names, words

#: greatest length of a mutated frame (bytes); longer ones are cut
LONGEST_FRAME = 8_000_000
#: numbers at or beyond the limits of the protocol, of doubles and of machine integers
NUMBERS = (
    *("0", "-0", "-0.0", "1", "-1", "2", "7", "0.5", "-0.5", "1e-320", "5e-324", "1e16", "1.1e16", "1e18", "1.1e18"),
    *("1e307", "1e308", "1e309", "-1e309", "1e999", "1E400", "9007199254740993", "2147483648", "4294967296"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775809", "18446744073709551616", "1" + "0" * 400),
    *("1." + "3" * 900, "NaN", "nan", "Infinity", "-Infinity", "inf", "0x10", "01", "+1", "1.", ".5", "1e", "--1"),
)
#: values of other types than a field expects
OTHERS = (
    "null",
    "true",
    "false",
    '""',
    '"1"',
    '"x"',
    "[]",
    "{}",
    "[null]",
    "[[]]",
    '{"a":1}',
    "[0,0,0]",
    '[{"a":[1]}]',
)
TEXTS = (
    *("", " ", "w0!", "!1", "!", "w0!1!1", "w0!1#1", "dyn!1", "none!1", "w0", "\0", "\x1b[2J", "a\nb", "\u202e"),
    *("\N{BAT}", "コウモリ", "'", '"', ",", "=1+1", "%s%d", "{0}", "../../etc/passwd", "null", "NaN", "n" * 70_000),
    *EVENTS,
    *DECISIONS,
    *HELLO_FEATURES,
    *words(),
)
#: sets of units, most of them wrong
SETS = (
    *("", " ", "0", "0-0", "0-3", "3-0", "0-3 2", "2 0-3", "0 0", "1 0", "0  1", " 0", "0 ", "0,1", "00", "0-", "-1"),
    *("0-999999999999999", "999999999999999", "1000000000000000", "9" * 30, "0-1-2", "a", "0x1", "٣", "0-3 8-19"),
    *("0-7", "4-7", "0-1 3 5-6", "+1", "1e3", "0;1", "0\n1", " ".join(map(str, range(0, 4000, 2))), "0-99999"),
)
#: text that replaces a value; most of it is invalid JSON
FRAGMENTS = (
    *(r'"\ud800"', r'"\udc00\ud800"', r'"\x"', r'"\u12"', '"a', "'a'", "/*c*/1", "1//", "[1,]", '{"a":1,}', "{a:1}"),
    *('{"a"}', "[", "{", "]", "}", "", ",", ":", "nul", "tru", "\t", "\ufeff", '"\t"', '"\n"', '"\0"', "[" * 200),
    *("[" * 5000, "[" * 99 + "]" * 99, "[" * 3000 + "]" * 3000, '{"a":' * 3000 + "1" + "}" * 3000, '"' + "x" * 200_000),
)


class Raw(str):
    """JSON text that `write` copies unchanged, valid or not."""

    __slots__ = ()


class Members(list[Any]):
    """A JSON object as a list of [key, value] pairs; a key may occur twice."""

    __slots__ = ()


@dataclass
class Words:
    """Values of the current run that the mutator may insert.

    Attributes:
        texts: strings, such as ids of existing jobs.
        sets: unit sets in the protocol's notation, such as ``0-3 8``.
        times: simulated times (s).
    """

    texts: Sequence[str] = ()
    sets: Sequence[str] = ()
    times: Sequence[float] = ()
    #: other frames; parts of them may be copied into the mutated one
    frames: Sequence[bytes] = ()
    #: types of events and decisions
    kinds: Sequence[str] = field(default_factory=tuple)


def read(frame: bytes) -> Any:
    """Parse a frame into a tree; raise ValueError if it is not JSON."""
    return json.loads(frame, object_pairs_hook=lambda pairs: Members([key, value] for key, value in pairs))


def write(tree: Any) -> bytes:
    """Return a tree as JSON bytes."""
    parts: list[str] = []
    _write(tree, parts)
    return "".join(parts).encode("utf-8", "surrogatepass")


def _write(tree: Any, parts: list[str]) -> None:
    if isinstance(tree, Raw):
        parts.append(tree)
    elif isinstance(tree, Members):
        parts.append("{")
        for place, (key, value) in enumerate(tree):
            parts.append(", " if place else "")
            _write(key, parts)
            parts.append(": ")
            _write(value, parts)
        parts.append("}")
    elif isinstance(tree, list):
        parts.append("[")
        for place, value in enumerate(tree):
            parts.append(", " if place else "")
            _write(value, parts)
        parts.append("]")
    else:
        parts.append(json.dumps(tree, ensure_ascii=False))


class Mutator:
    """Mutates frames at random.

    Args:
        seed: any object; its text seeds the random generator.
        words: values of the run to insert; an empty `Words` by default.
    """

    def __init__(self, seed: object, words: Words | None = None) -> None:
        self.random = random.Random(str(seed))
        self.words = words or Words()
        self._tree_changes: list[tuple[int, Callable[[Any, Any, Any], None]]] = [
            (6, self._other_value),
            (6, self._edge),
            (3, self._drop),
            (3, self._twice),
            (2, self._rename),
            (2, self._unknown),
            (3, self._swap),
            (2, self._fragment),
            (2, self._many),
            (1, self._wrap),
            (3, self._graft),
            (3, self._kind),
        ]
        self._byte_changes: list[tuple[int, Callable[[bytes], bytes]]] = [
            (4, self._flip),
            (3, self._truncate),
            (2, self._insert),
            (2, self._bad_text),
            (1, self._splice),
            (1, self._around),
            (1, self._utf16),
            (1, self._nothing_left),
        ]

    def mutate(self, frame: bytes) -> bytes:
        """Return a mutated copy of a frame."""
        pick = self.random
        only_bytes = pick.random() < 0.15
        if not only_bytes:
            try:
                tree = read(frame)
            except (ValueError, RecursionError):
                only_bytes = True
            else:
                for _ in range(1 + (pick.random() < 0.4) + 3 * (pick.random() < 0.1)):
                    tree = self._changed(tree)
                try:
                    frame = write(tree)
                except (ValueError, RecursionError):
                    only_bytes = True
        if only_bytes or pick.random() < 0.05:
            for _ in range(pick.choice((1, 1, 1, 2, 5))):
                frame = self._one_of(self._byte_changes)(frame)
        return frame[:LONGEST_FRAME]

    def _one_of(self, table: list[tuple[int, Any]]) -> Any:
        return self.random.choices([one for _, one in table], [weight for weight, _ in table])[0]

    # -- trees ------------------------------------------------------------------------------------------------------

    def _changed(self, tree: Any) -> Any:
        """Apply one random change to a tree and return the new root.

        2 % of the changes affect the root itself.
        """
        root = Members([["", tree]])
        places: list[tuple[Any, int]] = []
        _places(root, places)
        where, at = places[0] if self.random.random() < 0.02 else self.random.choice(places)
        self._one_of(self._tree_changes)(root, where, at)
        return root[0][1] if root else Raw("")

    @staticmethod
    def _get(where: Any, at: int) -> Any:
        return where[at][1] if isinstance(where, Members) else where[at]

    @staticmethod
    def _set(where: Any, at: int, value: Any) -> None:
        if isinstance(where, Members):
            where[at][1] = value
        else:
            where[at] = value

    def _other_value(self, _: Any, where: Any, at: int) -> None:
        value = self._get(where, at)
        words, pick = self.words, self.random
        if isinstance(value, str) and pick.random() < 0.7:
            pool = pick.choice([words.texts or TEXTS, words.sets or SETS, TEXTS, SETS])
            self._set(where, at, pick.choice(pool))
        elif isinstance(value, int | float) and pick.random() < 0.6 and words.times:
            base = pick.choice(words.times)
            self._set(where, at, base + pick.choice((0, 0, 1, -1, 1e-7, -1e-7, 0.5, 10.0)))
        else:
            self._set(where, at, Raw(pick.choice(OTHERS)))

    def _edge(self, _: Any, where: Any, at: int) -> None:
        value, pick = self._get(where, at), self.random
        if isinstance(value, bool) or not isinstance(value, int | float):
            self._set(where, at, Raw(pick.choice(NUMBERS)) if pick.random() < 0.3 else pick.choice(TEXTS + SETS))
        elif pick.random() < 0.5:
            self._set(where, at, Raw(pick.choice(NUMBERS)))
        else:
            with_change = (value + 1, value - 1, -value, value * 2, value * 1_000_000, value + 0.5, value / 3)
            self._set(where, at, pick.choice(with_change))

    def _drop(self, _: Any, where: Any, at: int) -> None:
        del where[at]

    def _twice(self, _: Any, where: Any, at: int) -> None:
        value = where[at]
        if isinstance(where, Members):
            value = [value[0], value[1] if self.random.random() < 0.5 else Raw(self.random.choice(OTHERS))]
        where.insert(self.random.randint(0, len(where)), value)

    def _rename(self, _: Any, where: Any, at: int) -> None:
        if isinstance(where, Members):
            where[at][0] = self.random.choice([*field_names(), where[at][0].upper(), "", f" {where[at][0]}"])
        else:
            self._set(where, at, Raw(self.random.choice(OTHERS)))

    def _unknown(self, _: Any, where: Any, at: int) -> None:
        value = Raw(self.random.choice(OTHERS + NUMBERS))
        where.insert(at, [self.random.choice(field_names()), value] if isinstance(where, Members) else value)

    def _swap(self, root: Any, where: Any, at: int) -> None:
        places: list[tuple[Any, int]] = []
        _places(root, places)
        other, there = self.random.choice(places)
        one, two = self._get(where, at), self._get(other, there)
        if not (_holds(one, other) or _holds(two, where)):
            self._set(where, at, two)
            self._set(other, there, one)

    def _fragment(self, _: Any, where: Any, at: int) -> None:
        self._set(where, at, Raw(self.random.choice(FRAGMENTS)))

    def _many(self, _: Any, where: Any, at: int) -> None:
        """Repeat a value of the frame many times.

        The value is a list entry, an object member or a character of a string.
        """
        pick = self.random
        times = pick.choice((2, 3, 10, 100, 1000, 12_000))
        value = self._get(where, at)
        if isinstance(value, str):
            self._set(where, at, value * min(times, 1 + 100_000 // (len(value) + 1)))
        elif isinstance(value, list) and value and not isinstance(value, Members):
            self._set(where, at, [_repeated(value, times)])
        elif isinstance(where, Members):
            where.extend([f"{where[at][0]}{number}", value] for number in range(min(times, 50)))
        else:
            where[at] = _repeated([value], times)

    def _wrap(self, _: Any, where: Any, at: int) -> None:
        value = self._get(where, at)
        for _ in range(self.random.choice((1, 1, 2, 90, 130))):
            value = [value] if self.random.random() < 0.5 else Members([["a", value]])
        self._set(where, at, value)

    def _graft(self, _: Any, where: Any, at: int) -> None:
        """Replace a value of the frame by a random part of another frame."""
        if self.words.frames:
            try:
                tree = Members([["", read(self.random.choice(self.words.frames))]])
            except (ValueError, RecursionError):
                return
            places: list[tuple[Any, int]] = []
            _places(tree, places)
            self._set(where, at, self._get(*self.random.choice(places)))

    def _kind(self, root: Any, where: Any, at: int) -> None:
        """Change the type of an event or decision, or shuffle a list in the frame."""
        typed: list[tuple[Any, int]] = []
        lists: list[Any] = []
        places: list[tuple[Any, int]] = []
        _places(root, places)
        for one, there in places:
            if isinstance(one, Members) and one[there][0] == "type":
                typed.append((one, there))
            elif isinstance(self._get(one, there), list) and not isinstance(self._get(one, there), Members):
                lists.append(self._get(one, there))
        if typed and self.words.kinds and self.random.random() < 0.6:
            self._set(*self.random.choice(typed), self.random.choice(self.words.kinds))
        elif lists:
            self.random.shuffle(self.random.choice(lists))

    # -- bytes ------------------------------------------------------------------------------------------------------

    def _flip(self, frame: bytes) -> bytes:
        data = bytearray(frame or b"\0")
        for _ in range(self.random.choice((1, 1, 2, 8))):
            data[self.random.randrange(len(data))] ^= 1 << self.random.randrange(8)
        return bytes(data)

    def _truncate(self, frame: bytes) -> bytes:
        cut = self.random.randint(0, len(frame))
        return frame[:cut] if self.random.random() < 0.7 else frame[cut:]

    def _insert(self, frame: bytes) -> bytes:
        at = self.random.randint(0, len(frame))
        piece = self.random.choice(
            (b"\0", b" ", b"{", b"}", b"[", b"]", b",", b'"', b"\\", b"\n" * 1000, b"\xef\xbb\xbf")
        )
        return frame[:at] + piece + frame[at:]

    def _bad_text(self, frame: bytes) -> bytes:
        at = self.random.randint(0, len(frame))
        piece = self.random.choice(
            (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\x80", b"\xe2\x82", b"\xfe\xff")
        )
        return frame[:at] + piece + frame[at:]

    def _splice(self, frame: bytes) -> bytes:
        other = self.random.choice(self.words.frames) if self.words.frames else frame
        return frame[: self.random.randint(0, len(frame))] + other[self.random.randint(0, len(other)) :]

    def _around(self, frame: bytes) -> bytes:
        before, after = self.random.choice(((b"[", b"]"), (b"", frame), (b" " * 5000, b""), (b"", b"x"), (b"", b"\0")))
        return before + frame + after

    @staticmethod
    def _utf16(frame: bytes) -> bytes:
        return frame.decode("utf-8", "replace").encode("utf-16")

    def _nothing_left(self, frame: bytes) -> bytes:
        return self.random.choice((b"", b" ", b"{}", b"[]", b"null", b"0", b'""', self.random.randbytes(40)))


def _places(tree: Any, found: list[tuple[Any, int]]) -> None:
    """Append the place of each value in a JSON tree to ``found``.

    A place is a pair: the list or object that holds the value, and the index or key in it. Only the first 60 entries of
    each container count, and collection stops after about 600 positions.
    """
    stack = [tree]
    while stack and len(found) < 600:
        one = stack.pop()
        for at in range(min(len(one), 60)):
            found.append((one, at))
            value = one[at][1] if isinstance(one, Members) else one[at]
            if isinstance(value, list):
                stack.append(value)


def _holds(tree: Any, one: Any) -> bool:
    if tree is one:
        return True
    values = [value for _, value in tree] if isinstance(tree, Members) else tree if isinstance(tree, list) else []
    return any(isinstance(value, list) and _holds(value, one) for value in values)


def _repeated(values: Any, times: int) -> Raw:
    """Return the values as comma-separated JSON, repeated ``times`` times.

    The text is at most about 3 MB long.
    """
    text = write(list(values))[1:-1].decode("utf-8", "surrogatepass")
    return Raw(", ".join([text] * max(1, min(times, 3_000_000 // (len(text) + 1)))))

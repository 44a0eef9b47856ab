"""Random JSONata: expressions of a known type over one document, so that most of them have a value."""

from __future__ import annotations

from random import Random
from typing import Any, Final, TypeVar

from tests.adapters.expressions_shapes import ANYTHING, LISTS, MAPPINGS, NUMBERS, SHAPES, TEXTS, TRUTHS

#: What the expressions read. It has what JSONata treats in its own way: null, empty lists, lists of one, of lists, of
#: mixed items, names that need backticks, and nothing at several depths.
DOCUMENT: Final[dict[str, Any]] = {
    "n": 7, "z": 0, "neg": -3, "f": 2.5, "big": 12345678901, "t": "hello", "e": "", "u": "Größe", "w": "a😀b",
    "num": "42", "yes": True, "no": False, "nil": None, "none": [], "one": [5], "nums": [3, 1, 2, 2, -1.5, 10],
    "strs": ["b", "a", "c", "a"], "mixed": [1, "a", True, None, {"a": 1}, [2, 3]], "nested": [[1, 2], [3], []],
    "o": {"a": 1, "b": {"c": [1, 2, 3], "d": "x"}, "null": None}, "empty": {},
    "items": [
        {"id": 1, "name": "pen", "price": 2.5, "qty": 10, "tags": ["a", "b"], "kind": "x"},
        {"id": 2, "name": "ink", "price": 12, "qty": 0, "tags": [], "kind": "y", "note": None},
        {"id": 3, "name": "nib", "price": 0.75, "qty": 100, "tags": ["b"], "kind": "x", "sub": {"v": 1}},
        {"id": 4, "name": "pad", "price": 12, "qty": 3, "kind": "z", "sub": {"v": [2, 3]}},
    ],
    "odd name": {"x-y": 1},
}  # fmt: skip


Choice = TypeVar("Choice")


class Source:
    """Makes one expression after the other from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._depth = 0

    def one(self) -> str:
        """An expression of some type."""
        self._depth = 0
        return self._pick([self.number, self.text, self.truth, self.list, self.mapping, self.any, self.whole])()

    def _pick(self, choices: list[Choice]) -> Choice:
        return self._random.choice(choices)

    def _fill(self, templates: str) -> str:
        """One of the lines with its places filled: N number, T text, B boolean, L list, O mapping, A anything, I items,
        F function, P predicate, S small number."""
        template = self._pick([line.strip() for line in templates.strip().split("\n")])
        makers = {
            "N": self.number, "T": self.text, "B": self.truth, "L": self.list, "O": self.mapping, "A": self.any,
            "I": self.items, "F": self.function, "P": self.predicate, "S": self.small,
        }  # fmt: skip
        self._depth += 1
        pieces = template.split("_")
        filled = pieces[0] + "".join(makers[piece[0]]() + piece[1:] for piece in pieces[1:])
        self._depth -= 1
        return filled

    def _deep(self) -> bool:
        return self._depth >= 3 or self._random.random() < 0.25

    def small(self) -> str:
        return self._pick(["0", "1", "2", "3", "-1", "-2", "5", "1.5"])

    def number(self) -> str:
        if self._deep():
            return self._pick(["n", "z", "neg", "f", "big", "o.a", "3", "-5", "0.1", "1e3", "missing", "nums[@]", "2"]
                              ).replace("@", self.small())  # fmt: skip
        return self._fill(NUMBERS)

    def text(self) -> str:
        if self._deep():
            return self._pick(
                ["t", "e", "u", "w", "num", "'x'", '"a b"', "strs[0]", "o.b.d", "missing", "items[1].name"]
            )
        return self._fill(TEXTS)

    def truth(self) -> str:
        if self._deep():
            return self._pick(["yes", "no", "true", "false", "missing = 1", "n > 3"])
        return self._fill(TRUTHS)

    def list(self) -> str:
        if self._deep():
            return self._pick(["nums", "strs", "none", "one", "mixed", "nested", "items", "o.b.c", "[1..4]", "missing"])
        return self._fill(LISTS)

    def items(self) -> str:
        return self._pick(["items", "items[price > 2]", "items[kind = 'x']", "(items^(price))", "items[[0..1]]"])

    def mapping(self) -> str:
        if self._deep():
            return self._pick(["o", "o.b", "empty", "items[0]", "items[-1]", "{'k': n}", "`odd name`", "missing"])
        return self._fill(MAPPINGS)

    def any(self) -> str:
        if self._deep():
            return self._pick(["nil", "null", "n", "t", "yes", "nums", "o", "missing", "mixed[3]", "items.note", "[]"])
        return self._fill(ANYTHING)

    def function(self) -> str:
        return self._pick(["$string", "$type", "function($v){$v}", "function($v){$v & ''}", "function($v, $i){$i}",
                           "$boolean", "function($v){{'v': $v}}", "function($v){[$v]}", "$exists"])  # fmt: skip

    def predicate(self) -> str:
        return self._pick(["function($v){$v > 1}", "function($v, $i){$i < 2}", "function($v){$exists($v)}", "$boolean",
                           "function($v){$type($v) = 'number'}", "function($v){$v = 2}"])  # fmt: skip

    def whole(self) -> str:
        """The larger shapes: paths with stages, groups, sorting, transforms, variables, chains."""
        return self._fill(SHAPES)

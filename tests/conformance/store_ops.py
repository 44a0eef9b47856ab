"""The operations of a store case, on the store in the database or on its twin in memory."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Final, TypeAlias

from django.db import connections

from statestore.entries import Store
from tests.conformance import matching
from tests.conformance.cases import HEAD, Case, known
from tests.conformance.matching import CaseError
from tests.conftest import Clock
from workflows.engine import jsontext

INPUTS: Final = HEAD | {"clock", "store"}
#: Kinds of keys that a poll writes and an author cannot.
POLLING: Final = ("cursor:", "seen:")

Opens: TypeAlias = Callable[[tuple[str, ...]], Store]
Transaction: TypeAlias = Callable[[], AbstractContextManager[Any]]


class Player:
    """Does operations in order. `opens` opens the store for kinds of keys; `transaction` is all or nothing on it."""

    def __init__(self, opens: Opens, transaction: Transaction, clock: Clock) -> None:
        self._opens = opens
        self._transaction = transaction
        self._clock = clock
        self._open()

    def _open(self) -> None:
        self._store = self._opens(())
        self._polling = self._opens(POLLING)

    def play(self, case: Case) -> None:
        """All operations in order, each checked."""
        known(case["id"], case, INPUTS)
        known("expect", case["expect"], ())
        for number, line in enumerate(case["store"]):
            words, arrow, result = _split(line)
            answer = self._do(words)
            if arrow:
                matching.equal(f"store[{number}] {jsontext.dumps(words)}", result, answer)

    def _do(self, words: list[Any]) -> Any:
        name, *arguments = words
        ttl = None
        if arguments and isinstance(arguments[-1], Mapping) and set(arguments[-1]) == {"ttl_ms"}:
            ttl = arguments.pop()["ttl_ms"] / 1000
        match name:
            case "put":
                key, value = arguments
                return self._store.put(key, value, ttl)
            case "putIfAbsent":
                key, value = arguments
                return self._store.put_if_absent(key, value, ttl)
            case "get":
                return self._store.get(*arguments)
            case "delete":
                return self._store.delete(*arguments)
            case "advance":
                return self._clock.advance(*arguments)
            case "reopen":
                connections.close_all()
                return self._open()
            case "concurrently":
                return self._concurrently(*arguments)
            case "poll":
                return self._poll(*arguments)
        raise CaseError(f"store: this runner does not know the operation {name}")

    def _concurrently(self, count: int, words: list[Any]) -> dict[str, int]:
        """How often each answer was given to that many threads at once."""
        start = threading.Barrier(count)
        answers: Counter[str] = Counter()

        def act() -> None:
            try:
                start.wait(30)
                answers[jsontext.dumps(self._do(list(words)))] += 1
            finally:
                connections.close_all()

        threads = [threading.Thread(target=act) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        return dict(answers)

    def _poll(self, items: list[str]) -> list[str]:
        """What a poll hands over: items not seen yet, each claimed once, with the place behind them, all or nothing.

        There is no poll trigger yet. What the case says about the store is that a claim (`put_if_absent`) and the
        cursor beside it are one transaction, and that both outlive the process.
        """
        with self._transaction():
            fresh = [item for item in items if self._polling.put_if_absent(f"seen:{item}", True)]
            if fresh:
                self._polling.put("cursor:case", fresh[-1])
        return fresh


def _split(line: list[Any]) -> tuple[list[Any], bool, Any]:
    """Operation, whether an answer is expected, and which."""
    if "->" not in line:
        return line, False, None
    place = line.index("->")
    if place != len(line) - 2:
        raise CaseError(f"store: one answer follows the arrow: {line}")
    return line[:place], True, line[-1]

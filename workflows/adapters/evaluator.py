"""JSONata and ECMAScript patterns, evaluated in guarded child processes (engine semantics 8).

No expression runs in this process: one that loops, fills the memory or crashes its interpreter takes a child with it
and nothing else. Children are warm, few, and used by one caller at a time. They inherit no environment and no files.
"""

from __future__ import annotations

import atexit
import json
import os
import threading
import weakref
from collections.abc import Mapping
from typing import Any, Final

from workflows.adapters.child_process import PATIENCE, Child, ChildDied, ChildStuck
from workflows.engine.effects import Evaluate, Evaluated, ExpressionFailed, Matched, MatchPatterns
from workflows.engine.values import NOTHING

#: Children of one process: enough that stuck expressions do not hold up the others, few enough for a small machine.
CHILDREN: Final = 4


class Evaluator:
    """A small pool of children. Thread safe; survives a fork and the death of any child."""

    def __init__(self, *, children: int = CHILDREN, patience: float = PATIENCE) -> None:
        self._limit = children
        self._patience = patience
        self._closed = False
        self._reset()
        _living.add(self)

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._idle: list[Child] = []
        self._all: set[Child] = set()
        self._starting = 0

    def evaluate(self, effect: Evaluate) -> Evaluated | ExpressionFailed:
        """Evaluate the sources one after the other under one shared limit."""
        if not effect.sources:
            return Evaluated(values=())
        answer = self._ask({"sources": effect.sources, "scope": effect.scope})
        if isinstance(answer, ExpressionFailed):
            return answer
        return Evaluated(values=tuple(value[0] if value else NOTHING for value in answer["values"]))

    def match(self, effect: MatchPatterns) -> Matched | ExpressionFailed:
        """Whether each ECMAScript pattern occurs in its text, under the same limit."""
        if not effect.pairs:
            return Matched(found=())
        answer = self._ask({"pairs": effect.pairs})
        if isinstance(answer, ExpressionFailed):
            return answer
        return Matched(found=tuple(answer["found"]))

    def close(self) -> None:
        """End the children. Those at work end when their work does; nothing can be evaluated afterwards."""
        with self._changed:
            self._closed = True
            idle, self._idle = self._idle, []
            self._all.difference_update(idle)
            self._changed.notify_all()
        for child in idle:
            child.end()

    @property
    def closed(self) -> bool:
        return self._closed

    def pids(self) -> list[int]:
        """Process ids of the children that are alive now."""
        with self._changed:
            return [child.pid for child in self._all if child.alive()]

    # Asking ------------------------------------------------------------------------------------------------

    def _ask(self, request: Mapping[str, Any]) -> Any:
        line = json.dumps(request, allow_nan=False, separators=(",", ":")).encode() + b"\n"
        problem = self._once(line)
        if isinstance(problem, ChildDied) and not problem.read:
            # It died before it read the request: nobody has tried this evaluation yet. Once more, on another child.
            problem = self._once(line)
        if not isinstance(problem, ChildDied | ChildStuck):
            answer = problem
            if "reason" not in answer:
                return answer
            return ExpressionFailed(index=answer["index"], reason=answer["reason"], position=answer["position"])
        return ExpressionFailed(index=problem.index, reason=str(problem))

    def _once(self, line: bytes) -> Any:
        """A child's answer, or how the child failed; such a child is not used again."""
        try:
            child = self._take()
        except ChildStuck as problem:
            return problem
        try:
            answer = child.ask(line, self._patience)
        except (ChildDied, ChildStuck) as problem:
            self._drop(child)
            return problem
        except BaseException:
            # An interrupt in the middle: what the child will still say belongs to nobody.
            self._drop(child)
            raise
        if answer.get("spent"):
            self._drop(child)
        else:
            self._give_back(child)
        return answer

    # The pool ----------------------------------------------------------------------------------------------

    def _take(self) -> Child:
        with self._changed:
            while True:
                if self._closed:
                    raise RuntimeError("The evaluator is closed.")
                while self._idle:
                    child = self._idle.pop()
                    if child.alive():
                        return child
                    self._all.discard(child)
                    child.end()
                if len(self._all) + self._starting < self._limit:
                    self._starting += 1
                    break
                self._changed.wait()
        started: Child | None = None
        try:
            started = Child()
        finally:
            with self._changed:
                self._starting -= 1
                if started is not None:
                    self._all.add(started)
                else:
                    self._changed.notify()
        return started

    def _give_back(self, child: Child) -> None:
        with self._changed:
            if not self._closed and child in self._all:
                self._idle.append(child)
                self._changed.notify()
                return
        self._drop(child)

    def _drop(self, child: Child) -> None:
        with self._changed:
            self._all.discard(child)
            self._changed.notify()
        child.end()

    def forget_children(self) -> None:
        """After a fork, in the new process: the children are the old process's. Let go of them and start afresh."""
        children = self._all
        self._reset()
        for child in children:
            child.abandon()


_living: weakref.WeakSet[Evaluator] = weakref.WeakSet()
_shared: Evaluator | None = None
_shared_lock = threading.Lock()


def shared() -> Evaluator:
    """This process's evaluator, made when it is first needed."""
    global _shared
    with _shared_lock:
        if _shared is None or _shared.closed:
            _shared = Evaluator()
            atexit.register(_shared.close)
        return _shared


def _after_fork() -> None:
    global _shared_lock
    _shared_lock = threading.Lock()
    for evaluator in list(_living):
        evaluator.forget_children()


os.register_at_fork(after_in_child=_after_fork)

"""The evaluator's child process: evaluates expressions and searches patterns, one request at a time, for one parent.

It reads one JSON object a line on stdin. To each it answers on stdout: `+` when the request was read, `.` as each
source or pair is begun, then one JSON object and a newline. It holds no secret, opens nothing, and ends with its stdin.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Final

import regress

from workflows.adapters.jsonata_guard import Guarded, Problem, correct_library, plain, reason_of, with_nulls
from workflows.spec import expressions, jsonata_parser

SECONDS: Final = 1.0
#: Processor time after which the kernel ends a child that is stuck where no Python code runs and whose parent is gone.
CPU_SECONDS: Final = 3.0
MEMORY: Final = 512 * 1024 * 1024
#: 400 nested calls need about 4,000 frames.
FRAMES: Final = 5_000
Begin = Callable[[], None]


class OutOfTime(BaseException):
    """The batch used up its time. Not an Exception, so that nothing in a library takes it for its own."""


def main() -> None:
    """Serve requests until stdin ends."""
    requests, answers = _guarded_streams()
    _limit_process()
    correct_library()
    _write(answers, b"ready\n")
    for line in requests:
        _write(answers, b"+")
        answer = _answer(line, lambda: _write(answers, b"."))
        _write(answers, answer + b"\n")


def _guarded_streams() -> tuple[BinaryIO, int]:
    """Our two pipes, with stdout taken away from everybody else: the library prints when it is puzzled."""
    answers = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    return sys.stdin.buffer, answers


def _limit_process() -> None:
    limits = [(resource.RLIMIT_CORE, 0)]
    if sys.platform != "darwin":  # its kernel refuses this one
        limits.append((resource.RLIMIT_AS, MEMORY))
    for kind, limit in limits:
        _, hard = resource.getrlimit(kind)
        allowed = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (allowed, allowed))
    sys.setrecursionlimit(FRAMES)
    # A signal to the whole process group is for the parent, which still needs us while it finishes its steps.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, _out_of_time)


def _out_of_time(_number: int, _frame: Any) -> None:
    raise OutOfTime


def _write(answers: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(answers, view) :]


def _answer(line: bytes, begin: Begin) -> bytes:
    """What to say. `spent` tells the parent to end this process: it may be full of what it was working on."""
    begun = 0

    def begin_one() -> None:
        nonlocal begun
        begun += 1
        begin()

    try:
        with _time_limit():
            return json.dumps(_perform(line, begin_one)).encode()
    except OutOfTime:
        reason, position, spent = f"it took longer than {SECONDS:g} second, the limit", None, True
    except Problem as problem:
        reason, position, spent = problem.reason, problem.position, isinstance(problem.__cause__, MemoryError)
    except MemoryError as error:
        reason, position, spent = reason_of(error), None, True
    index = max(0, begun - 1)
    return json.dumps({"reason": reason, "position": position, "index": index, "spent": spent}).encode()


@contextlib.contextmanager
def _time_limit() -> Iterator[None]:
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.setitimer(signal.ITIMER_PROF, 0)


def _perform(line: bytes, begin: Begin) -> dict[str, Any]:
    request = json.loads(line)
    if "pairs" in request:
        return {"found": [_occurs(pattern, text, begin) for pattern, text in request["pairs"]]}
    scope = request["scope"]
    if b"null" in line:
        with_nulls(scope)
    return {"values": [_value(source, scope, begin) for source in request["sources"]]}


# Expressions -------------------------------------------------------------------------------------------------


def _value(source: str, scope: dict[str, Any], begin: Begin) -> list[Any]:
    """The value in a list of one; an empty list for nothing."""
    begin()
    found = _compiled(source).run(scope)
    return [] if found is None else [plain(found)]


@functools.lru_cache(maxsize=256)
def _compiled(source: str) -> Guarded:
    for problem in expressions.check(source):
        raise Problem(problem.message, problem.position)
    try:
        return Guarded(source)
    except jsonata_parser.SyntaxFault as fault:
        raise Problem(fault.reason, fault.position) from fault


# Patterns ----------------------------------------------------------------------------------------------------


def _occurs(pattern: str, text: str, begin: Begin) -> bool:
    begin()
    try:
        return _pattern(pattern).find(text) is not None
    except regress.RegressError as error:
        raise Problem(f"the pattern cannot be read ({error})") from error


@functools.lru_cache(maxsize=256)
def _pattern(pattern: str) -> regress.Regex:
    return regress.Regex(pattern)

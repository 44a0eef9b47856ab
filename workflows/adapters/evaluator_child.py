"""The evaluator's child process: evaluates expressions and searches patterns, one request at a time, for one parent.

It reads one JSON object a line on stdin. To each it answers on stdout: `+` when the request was read, `.` as each
source or pair is begun, then one JSON object and a newline. It holds no secret, opens nothing but the figures of its
own size, and ends with its stdin.
"""

from __future__ import annotations

import functools
import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from typing import Any, BinaryIO, Final

import regress

from workflows.adapters.jsonata_guard import Guarded, reason_of
from workflows.adapters.jsonata_natives import correct_library
from workflows.adapters.jsonata_steps import Problem, meter
from workflows.adapters.jsonata_values import plain, with_nulls
from workflows.spec import expressions, jsonata_parser

#: Processor time after which the kernel ends this process in the middle of a request, whatever it does. Of patterns it
#: is the limit itself, as nothing can be counted in them; an expression runs out of steps long before.
PATTERN_SECONDS: Final = 1.0
EXPRESSION_SECONDS: Final = 10.0
MEMORY: Final = 512 * 1024 * 1024
#: A child that holds so much more than at its start is not used again: every evaluation finds as much as any other.
GROWN: Final = 64 * 1024 * 1024
#: 400 nested calls need about 4,000 frames.
FRAMES: Final = 5_000
#: Characters of sources whose trees are kept; a tree takes a kilobyte a character.
KEPT: Final = 20_000
#: Steps that stand for the start of an evaluation.
_BEGINNING: Final = 50
Begin = Callable[[], None]


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
    # Its default: the kernel's own hand, for when no Python code runs.
    signal.signal(signal.SIGPROF, signal.SIG_DFL)


def _write(answers: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(answers, view) :]


def _answer(line: bytes, begin: Begin) -> bytes:
    """What to say. `spent` tells the parent to end this process: it is full of what it was working on."""
    begun = 0

    def begin_one() -> None:
        nonlocal begun
        begun += 1
        begin()

    try:
        answer = _perform(line, begin_one)
        return json.dumps(answer | {"spent": _has_grown()}).encode()
    except Problem as problem:
        reason, position, spent = problem.reason, problem.position, isinstance(problem.__cause__, MemoryError)
    except (MemoryError, RecursionError) as error:
        reason, position, spent = reason_of(error), None, True
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    index = max(0, begun - 1)
    failed = {"reason": reason, "position": position, "index": index, "spent": spent or _has_grown()}
    return json.dumps(failed).encode()


def _has_grown() -> bool:
    """Whether this process holds much more of its memory limit than when it began."""
    return _address_space() > _begun_with + GROWN


def _address_space() -> int:
    """Bytes, as the limit counts them; 0 where the system does not say. (The peak of getrusage is the parent's too.)"""
    try:
        with open("/proc/self/statm", "rb", buffering=0) as figures:
            return int(figures.read(64).split()[0]) * resource.getpagesize()
    except OSError:
        return 0


_begun_with: Final = _address_space()


def _perform(line: bytes, begin: Begin) -> dict[str, Any]:
    meter.refill()
    request = json.loads(line)
    if "pairs" in request:
        signal.setitimer(signal.ITIMER_PROF, PATTERN_SECONDS)
        return {"found": [_occurs(pattern, text, begin) for pattern, text in request["pairs"]]}
    signal.setitimer(signal.ITIMER_PROF, EXPRESSION_SECONDS)
    scope = request["scope"]
    if b"null" in line:
        with_nulls(scope)
    return {"values": [_value(source, scope, begin) for source in request["sources"]]}


# Expressions -------------------------------------------------------------------------------------------------


def _value(source: str, scope: dict[str, Any], begin: Begin) -> list[Any]:
    """The value in a list of one; an empty list for nothing."""
    begin()
    # Whether or not its tree is kept: the same source costs the same every time.
    meter.charge(_BEGINNING + len(source))
    found = _compiled(source).run(scope)
    return [] if found is None else [plain(found)]


_trees: dict[str, Guarded] = {}


def _compiled(source: str) -> Guarded:
    kept = _trees.get(source)
    if kept is not None:
        return kept
    for problem in expressions.check(source):
        raise Problem(problem.message, problem.position)
    try:
        made = Guarded(source)
    except jsonata_parser.SyntaxFault as fault:
        raise Problem(fault.reason, fault.position) from fault
    if sum(map(len, _trees)) + len(source) > KEPT:
        _trees.clear()
    _trees[source] = made
    return made


# Patterns ----------------------------------------------------------------------------------------------------


def _occurs(pattern: str, text: str, begin: Begin) -> bool:
    begin()
    try:
        return _pattern(pattern).find(text) is not None
    except regress.RegressError as error:
        raise Problem(f"the pattern cannot be read ({error})") from error


@functools.lru_cache(maxsize=64)
def _pattern(pattern: str) -> regress.Regex:
    return regress.Regex(pattern)

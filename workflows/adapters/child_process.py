"""One warm evaluator child: started, asked under a wall clock, ended. Used by one caller at a time."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

import workflows

#: By the clock on the wall, for an answer. A child stops by what it has used, which no busy machine changes; this is
#: for one that no longer runs at all, so it is long.
PATIENCE: Final = 60.0
#: For a child to come up, and to take a request off our hands: a busy machine, not an expression, decides these.
START: Final = 60.0
HANDING_OVER: Final = 60.0
#: Of one answer; a larger one is refused rather than held in memory.
ANSWER_LIMIT: Final = 64 * 1024 * 1024
_PIECE: Final = 1024 * 1024
_NOT_STARTED: Final = "the evaluator's child process could not be started"
_BOOT: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]);"
    "from workflows.adapters.evaluator_child import main; main()"
)


class ChildDied(Exception):
    """The child ended by itself. `read` says whether it had the request by then, `index` how far it was."""

    def __init__(self, message: str, *, read: bool, index: int = 0) -> None:
        super().__init__(message)
        self.read = read
        self.index = index


class ChildStuck(Exception):
    """The child did not answer in time, or answered too much. `index` says how far it was."""

    def __init__(self, message: str, *, index: int = 0) -> None:
        super().__init__(message)
        self.index = index


class Child:
    """A running child process. Raises ChildStuck when it does not come up."""

    def __init__(self) -> None:
        try:
            # -I and -S: no environment, no user's site, no .pth files; it gets exactly our import path.
            self._process = subprocess.Popen(  # noqa: S603  (our own interpreter, a constant program, no shell)
                [sys.executable, "-I", "-S", *_as_we_do(), "-c", _BOOT, json.dumps(_import_path())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=_environment(),
                close_fds=True,
                cwd="/",
                bufsize=0,
            )
        except OSError as error:
            # No processes, files or memory left. The words of the system say which; the program is no secret.
            raise ChildStuck(f"{_NOT_STARTED} ({error.strerror or error})") from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in = self._process.stdin.fileno()
        self._out = self._process.stdout.fileno()
        os.set_blocking(self._in, False)
        os.set_blocking(self._out, False)
        self.pid = self._process.pid
        try:
            self._line(START)
        except (ChildDied, ChildStuck) as problem:
            self.end()
            raise ChildStuck(_NOT_STARTED) from problem
        except BaseException:
            self.end()
            raise

    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def ask(self, line: bytes, patience: float = PATIENCE) -> Any:
        """Send one request and wait for its answer; ChildDied or ChildStuck when there is none."""
        self._send(line, time.monotonic() + HANDING_OVER)
        return json.loads(self._line(patience))

    def end(self) -> None:
        """Kill the process and clean up after it. Nothing it could still do matters."""
        self._process.kill()
        self._process.wait()
        self._close()

    def abandon(self) -> None:
        """Let go of another process's child without touching it: close our copies of its pipes."""
        self._process.returncode = 0  # not ours to wait for
        self._close()

    def _close(self) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()

    # The pipes ---------------------------------------------------------------------------------------------

    def _send(self, line: bytes, until: float) -> None:
        view = memoryview(line)
        while view:
            try:
                view = view[os.write(self._in, view) :]
            except BlockingIOError:
                if not _ready(self._in, select.POLLOUT, until):
                    raise ChildStuck("the evaluator's child process did not take the request") from None
            except BrokenPipeError:
                raise ChildDied(self._how_it_ended(), read=False) from None

    def _line(self, patience: float) -> bytes:
        """The next line, without the marks of progress ahead of it."""
        received = bytearray()
        until = time.monotonic() + patience
        while not received.endswith(b"\n"):
            if not _ready(self._out, select.POLLIN, until):
                silent = f"the evaluator's child process did not answer within {patience:g} seconds"
                raise ChildStuck(silent, index=_index(received))
            piece = os.read(self._out, _PIECE)
            if not piece:
                raise ChildDied(self._how_it_ended(), read=received.startswith(b"+"), index=_index(received))
            received += piece
            if len(received) > ANSWER_LIMIT:
                raise ChildStuck("the result is too large", index=_index(received))
        return bytes(received).lstrip(b"+.")

    def _how_it_ended(self) -> str:
        try:
            code = self._process.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            return "the evaluator's child process closed its pipes"
        if code == -signal.SIGPROF:
            return "it takes longer than 1 second, the limit"
        how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        return f"the evaluator's child process {how} during the evaluation"


def _ready(descriptor: int, event: int, until: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, event)
    return bool(poll.poll(max(0.0, until - time.monotonic()) * 1000))


def _index(received: bytearray) -> int:
    """Which source the child was at: it marks each as it begins."""
    return max(0, received.partition(b"{")[0].count(b".") - 1)


def _as_we_do() -> tuple[str, ...]:
    """Whether it keeps what it compiles; nobody else imports its modules, and each would compile them again."""
    return ("-B",) if sys.dont_write_bytecode else ()


def _import_path() -> list[str]:
    """Where this process finds modules, ours first, as whole paths."""
    ours = str(Path(workflows.__file__).resolve().parent.parent)
    return [ours, *(str(Path(entry).resolve()) for entry in sys.path if entry)]


def _environment() -> dict[str, str]:
    """Nothing of ours but what the interpreter may need to find its own shared libraries."""
    return {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}

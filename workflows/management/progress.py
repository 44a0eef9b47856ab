"""What a person sees of a run on its way: a line when a step starts and one when it ended, with the time it took; and
of work that is only counted, how far it is.

Times are this process's; what a person took to answer is told apart from the work (engine semantics 17.2).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from workflows.engine.events import Completed, Event, Failed, Rejected, StepCompleted, StepStarted
from workflows.management.terminal import duration, one_line

#: A step that takes longer than this is counted, where a terminal can show it.
COUNTED_AFTER_SECONDS = 2.0
#: What a program answers takes no time that is worth a word.
SHOWN_SECONDS = 0.05

Write = Callable[[str], None]


class Progress:
    """Writes the lines of one run. `live` counts the seconds of long steps as well: for terminals alone."""

    def __init__(self, write: Write, *, live: bool) -> None:
        self._write = write
        self._counter = _Counter(write) if live else None
        self._began = self._step_began = time.monotonic()
        self._asked = self._step_asked = 0.0
        self._steps = 0
        self._step = "run"  # Until a step starts here: another worker may have started it.

    def hear(self, event: Event) -> None:
        """Tell the person."""
        self.stop()
        match event:
            case StepStarted():
                self._step_began, self._step_asked = time.monotonic(), 0.0
                self._steps += 1
                self._step = event.step
                self._write(f"{one_line(event.step)} running...\n")
                self._count()
            case StepCompleted(replayed=False):
                confidence = [] if event.confidence is None else [f"confidence {event.confidence:g}"]
                self._ended(event.step, "completed", confidence)
            case Rejected():
                self._ended(event.step, "rejected", [])
            case Failed(step=str(step)):
                self._ended(step, "failed", [])
        if isinstance(event, Completed | Rejected | Failed):
            self._total()

    def wait(self, seconds: float, slot: str) -> None:
        """Tell the person that the step's next attempt, or its turn at a host, is so far away.

        `slot` is only a mark of the host, which says nothing to a person.
        """
        if seconds < SHOWN_SECONDS:
            return
        self.stop()
        why = "for its turn (pace)" if slot else "before the next attempt"
        self._write(f"{one_line(self._step)} waits {duration(seconds)} {why}\n")
        self._count()

    def stop(self) -> None:
        """Count no more, and leave the terminal's line empty."""
        if self._counter is not None:
            self._counter.stop()

    @contextmanager
    def asking(self) -> Iterator[None]:
        """While a person is asked; afterwards the step goes on."""
        began = time.monotonic()
        yield
        took = time.monotonic() - began
        self._asked += took
        self._step_asked += took
        self._count()

    def _count(self) -> None:
        if self._counter is not None:
            self._counter.start()

    def _ended(self, step: str, how: str, notes: list[str]) -> None:
        took = time.monotonic() - self._step_began - self._step_asked
        if self._step_asked >= SHOWN_SECONDS:
            notes = [f"answered after {duration(self._step_asked)}", *notes]
        more = f" ({', '.join(notes)})" if notes else ""
        when = "in" if how == "completed" else "after"
        self._write(f"{one_line(step)} {how} {when} {duration(took)}{more}\n")

    def _total(self) -> None:
        if not self._steps:
            return
        steps = "1 step" if self._steps == 1 else f"{self._steps} steps"
        asked = f", {duration(self._asked)} of it for answers" if self._asked >= SHOWN_SECONDS else ""
        self._write(f"{steps} in {duration(time.monotonic() - self._began)}{asked}\n")


class _Counter:
    """Seconds that count up in the terminal's last line, written over by carriage returns."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._thread: threading.Thread | None = None
        self._over = threading.Event()

    def start(self) -> None:
        self.stop()
        self._over.clear()
        self._thread = threading.Thread(target=self._count, args=(time.monotonic(),), name="counting", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        if self._thread is not None:
            self._over.set()
            self._thread.join()
            self._thread = None

    def _count(self, began: float) -> None:
        if self._over.wait(COUNTED_AFTER_SECONDS):
            return
        shown = ""
        while True:
            text = f"  {duration(time.monotonic() - began, whole=True)}"
            self._write("\r" + text.ljust(len(shown)))
            shown = text
            if self._over.wait(1.0):
                break
        self._write("\r" + " " * len(shown) + "\r")


class Tally:
    """Counts what is done of something long; after a while it says how much, at a terminal every second in one line.

    Elsewhere a line now and then, so that a log shows that it goes on. `out` is a command's stderr.
    """

    def __init__(self, name: str, out: Any, *, every: float = 30.0) -> None:
        self.done = 0
        self._name = name
        self._out = out
        self._live = bool(out.isatty())
        self._every = 1.0 if self._live else every
        self._say_at = time.monotonic() + (COUNTED_AFTER_SECONDS if self._live else every)
        self._shown = ""

    def __enter__(self) -> Tally:
        return self

    def __exit__(self, *problem: object) -> None:
        if self._shown:
            self._write("\r" + " " * len(self._shown) + "\r")

    def add(self, number: int) -> None:
        """So many more are done."""
        self.done += number
        if time.monotonic() < self._say_at:
            return
        self._say_at = time.monotonic() + self._every
        text = f"{self._name}: {self.done:,} so far"
        if self._live:
            self._write("\r" + text.ljust(len(self._shown)))
            self._shown = text
        else:
            self._write(text + "\n")

    def _write(self, text: str) -> None:
        try:
            self._out.write(text, ending="")
            self._out.flush()
        except OSError:
            # Nobody reads it: the work goes on, and so does its count.
            self._say_at = float("inf")

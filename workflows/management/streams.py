"""Standard streams that are closed, full, or left by their reader: what a command does never depends on them."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any


def open_missing() -> None:
    """Streams into nothing where the caller closed stdout or stderr (`>&-`)."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  (it stays until the end)


def let_go(stream: Any) -> None:
    """Turn a stream that takes nothing more into one that takes all, as the interpreter flushes it once more."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())

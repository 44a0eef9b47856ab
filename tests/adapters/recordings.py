"""Builders for the tests of record and replay: the two tools on one folder, and calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from workflows.adapters.evaluator import Evaluator
from workflows.adapters.fixtures import Fixtures
from workflows.adapters.http import HttpTool
from workflows.adapters.recorded_tools import RecordingSource, ReplayingSource
from workflows.adapters.sending import Sender
from workflows.engine.effects import HttpCall, ToolFailed, ToolOutput


class Desk:
    """A recording tool and a replaying one on one folder."""

    def __init__(self, folder: Path, evaluator: Evaluator) -> None:
        self.folder = folder
        kept, sender = Fixtures(folder), Sender(timeout=5, private_addresses=["*"])
        self._recording = HttpTool(RecordingSource(sender, kept, ["model key"]), evaluator=evaluator)
        self._replaying = HttpTool(ReplayingSource(kept, ["model key"]), evaluator=evaluator)

    def record(self, call: HttpCall) -> ToolOutput | ToolFailed:
        return self._recording.call(call, deadline_check=lambda: None)

    def replay(self, call: HttpCall) -> ToolOutput | ToolFailed:
        def never() -> None:
            raise AssertionError("a request was about to leave")

        return self._replaying.call(call, deadline_check=never)

    def files(self) -> list[Path]:
        return sorted(path for path in self.folder.glob("*") if path.is_file())

    def content(self) -> dict[str, Any]:
        (path,) = self.files()
        content: dict[str, Any] = json.loads(path.read_text("utf-8"))
        return content


def request(url: str, **changes: Any) -> HttpCall:
    fields: dict[str, Any] = {"tool": "look up", "method": "GET", "url": url, "headers": (), "body": None}
    return HttpCall(**{**fields, **changes})


def post(url: str, body: bytes, **changes: Any) -> HttpCall:
    return request(url, **{"method": "POST", "body": body, **changes})

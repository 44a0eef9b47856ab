"""One attempt of an HTTP tool call: get the answer, judge it (engine semantics 14)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from workflows.adapters.evaluator import Evaluator, shared
from workflows.adapters.sending import Sender, Source
from workflows.engine import judging
from workflows.engine.effects import ExpressionFailed, HttpCall, MatchPatterns, ToolFailed, ToolOutput


class HttpTool:
    """Calls HTTP tools. Thread safe; one for the process is enough."""

    def __init__(self, source: Source | None = None, *, evaluator: Evaluator | None = None) -> None:
        """Without a source the answers come from the wire, within the operator's limits."""
        self._source = Sender() if source is None else source
        self._evaluator = evaluator

    def call(self, call: HttpCall, *, deadline_check: Callable[[], None]) -> ToolOutput | ToolFailed:
        """Make one attempt. `deadline_check` runs right before each request; what it raises comes through."""
        answer = self._source.answer(call, deadline_check=deadline_check)
        if isinstance(answer, ToolFailed):
            return answer
        outcome = judging.judge(
            call,
            answer.status,
            answer.reason,
            answer.body,
            self._matches,
            content_type=answer.headers.get("content-type", ""),
        )
        if isinstance(outcome, ToolFailed) and not 200 <= answer.status <= 299:
            return replace(outcome, retry_after=answer.headers.get("retry-after"))
        return outcome

    def _matches(self, pattern: str, text: str) -> bool:
        evaluator = self._evaluator or shared()
        outcome = evaluator.match(MatchPatterns(pairs=((pattern, text),)))
        if isinstance(outcome, ExpressionFailed):
            raise judging.PatternUndecided(outcome.reason)
        return outcome.found[0]

"""A run in memory asks again as well when its approval ended before anything was called (spec 1.2, `valid_for`)."""

from __future__ import annotations

import time
from pathlib import Path

from tests.approvals.policies import ANSWERS, text_of, written
from tests.fakes_tools import FakeTools
from workflows.advance import world_for
from workflows.engine.effects import Decision, Pause
from workflows.engine.situation import Situation
from workflows.memory_run import by_rule, decision_for, run_in_memory

TWO = "{step: first, type: tool, tool: look}\n    - {step: sign, type: tool, tool: pay}"


def test_when_its_turn_came_too_late_a_person_is_asked_again(tmp_path: Path) -> None:
    asked: list[Pause] = []

    def yes(pause: Pause) -> Decision:
        asked.append(pause)
        if len(asked) > 1:
            time.sleep(1.0)  # so that the next turn comes soon after this answer
        return decision_for(pause, approved=True, reason=None, by="asha")

    with FakeTools(ANSWERS) as tools:
        pay = "approval: {valid_for: 1s}, pace: {rps: 0.7}"
        text = text_of(TWO, url=tools.url, pay=pay).replace('/look"}', '/look", pace: {rps: 0.7}}')
        spec = written(tmp_path, text).spec
        state = run_in_memory(spec, Situation(input="go"), world_for(spec), ask=yes, listener=lambda *_: None)
        assert state["status"] == "completed"
        paths = [request.url.rpartition("/")[2] for request in tools.requests]
    assert paths == ["look", "pay", "last"]
    assert [pause.went_stale for pause in asked] == [False, True]


def test_only_approvals_under_such_a_policy_have_an_end(tmp_path: Path) -> None:
    pauses: list[Pause] = []

    def see(pause: Pause) -> None:
        pauses.append(pause)

    for policy in ("valid_for: 1h", "require_reason: never"):
        spec = written(tmp_path, text_of(f"{{step: sign, type: approval, {policy}}}")).spec
        run_in_memory(spec, Situation(input="go"), world_for(spec), ask=see, listener=lambda *_: None)
    timed, plain = pauses
    assert decision_for(timed, approved=True, reason=None, by="a").valid_until is not None
    assert decision_for(timed, approved=False, reason=None, by="a").valid_until is None
    assert decision_for(plain, approved=True, reason=None, by="a").valid_until is None
    assert by_rule(timed) is None

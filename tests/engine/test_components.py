"""The two components there are, and what is wrong with a tool that asks for another thing (engine semantics 15.3)."""

from __future__ import annotations

from typing import Any

import pytest

from workflows.engine import components
from workflows.spec.model import ComponentTool


def slack(**changed: Any) -> ComponentTool:
    fields: dict[str, Any] = {
        "name": "tell",
        "use": "kampong/slack@1.0.0",
        "op": "post_message",
        "with_": {"channel": "#ops", "text": "hi"},
        "secrets": {"token": "${SLACK}"},
        **changed,
    }
    return ComponentTool(**fields)


def mail(**changed: Any) -> ComponentTool:
    inputs = {"to": "a@example.org", "subject": "s", "body": "b"}
    return slack(**{"use": "kampong/gmail@1.0.0", "op": "send", "with_": inputs, **changed})


@pytest.mark.parametrize("tool", [slack(), mail()])
def test_what_is_whole_has_no_problem_and_asks_nobody_by_itself(tool: ComponentTool) -> None:
    assert components.problem(tool) is None
    assert components.op_of(tool).effect == "write"
    assert components.needs_approval(tool) is False
    assert components.needs_approval(tool.model_copy(update={"requires_approval": True})) is True


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        (slack(use="acme/mailer@1.4.0"), ("acme/mailer@1.4.0", "kampong/gmail@1.0.0 (send)", "kampong/slack@1.0.0")),
        (slack(use="kampong/slack@1.0.1"), ("kampong/slack@1.0.1", "kampong/slack@1.0.0 (post_message)")),
        (slack(use="kampong/slack@1.0.0-rc.1"), ("kampong/slack@1.0.0-rc.1", "kampong/slack@1.0.0 (post_message)")),
        (slack(op="delete"), ("kampong/slack@1.0.0", '"delete"', '"post_message"')),
        (slack(op="send"), ("kampong/slack@1.0.0", '"send"', '"post_message"')),
        (slack(with_={"text": "hi"}), ('needs "channel"', '"channel", "text"')),
        (slack(with_={"channel": None, "text": ""}), ('needs "channel"', 'needs "text"')),
        (slack(with_={"channel": "c", "text": "t", "txet": "t"}), ("txet", "only inputs", '"channel", "text"')),
        (slack(secrets={}), ('needs "token"', "${NAME}")),
        (slack(secrets={"token": "${A}", "key": "${B}"}), ("holds key", "only slot", '"token"')),
        (slack(config={"region": "eu"}), ("region", "no settings")),
        (mail(with_={}), ('needs "to"', 'needs "subject"', 'needs "body"')),
        (mail(op="post_message"), ('"post_message"', '"send"')),
    ],
)
def test_a_problem_names_tool_component_and_what_there_is(tool: ComponentTool, words: tuple[str, ...]) -> None:
    problem = components.problem(tool) or ""
    assert all(word in problem for word in ('"tell"', tool.use, *words)), problem
    assert problem.endswith(".")


def test_everything_wrong_is_told_at_once() -> None:
    problem = components.problem(slack(with_={"x": 1}, secrets={"y": "${Y}"}, config={"z": "1"})) or ""
    assert problem.count(";") == 5


def test_a_file_cannot_make_an_endless_message() -> None:
    problem = components.problem(slack(with_={f"name{number}": "x" * 1000 for number in range(100_000)})) or ""
    assert "and 99950 more" in problem
    assert len(problem) < 10_000


def test_values_are_not_repeated() -> None:
    problem = components.problem(slack(with_={"channel": "s3cr3t", "nope": "s3cr3t"}, config={"a": "s3cr3t"}))
    assert "s3cr3t" not in (problem or "")

"""Slack, Gmail and component tools: what is shown, what is sent, who is asked first (engine semantics 13, 15)."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.engine.scripted import Played, Script, a_condition, a_spec, a_tool_step, play
from workflows.engine.effects import AskPerson, CallTool, Evaluate, HttpCall, ReadEnvironment, ToolFailed, ToolOutput
from workflows.engine.situation import Situation
from workflows.spec.model import ComponentTool, GmailTool, SlackTool, Tool

OK = {"send": [ToolOutput(value={"ok": True})]}
SECRET = "xoxb-canary/1"
HOSTILE = "${TOKEN} $${TOKEN} {input} {{ input }} {go} costs ${5} <!channel> é\n"


def slack(**changed: Any) -> SlackTool:
    return SlackTool(**{"name": "send", "token": "${TOKEN}", "channel": "#ops", "text": "hi", **changed})


def gmail(**changed: Any) -> GmailTool:
    texts = {"to": "bo@example.org", "subject": "Hello", "body": "Hi"}
    return GmailTool(**{"name": "send", "token": "${TOKEN}", **texts, **changed})


def slack_component(**changed: Any) -> ComponentTool:
    given = {"channel": "#ops", "text": "hi", **changed.pop("with_", {})}
    fields = {"name": "send", "use": "kampong/slack@1.0.0", "op": "post_message", "secrets": {"token": "${TOKEN}"}}
    return ComponentTool(**{**fields, "with_": given, **changed})


def gmail_component(**changed: Any) -> ComponentTool:
    given = {"to": "bo@example.org", "subject": "Hello", "body": "Hi", **changed.pop("with_", {})}
    fields = {"name": "send", "use": "kampong/gmail@1.0.0", "op": "send", "secrets": {"token": "${TOKEN}"}}
    return ComponentTool(**{**fields, "with_": given, **changed})


EVERY_TOOL = [slack(), gmail(), slack_component(), gmail_component()]


def played(tool: Tool, *, version: str = "1.1", input: str = "go", **script: Any) -> Played:
    given = {"env": {"TOKEN": SECRET}, "tools": OK, **script}
    return play(a_spec(a_tool_step(), tools=[tool], version=version), Situation(input=input), Script(**given))


def call_of(tool: Tool, **options: Any) -> HttpCall:
    done = played(tool, **options)
    assert done.line == "S C completed", done.last
    return done.calls[0]


def body_of(call: HttpCall) -> Any:
    return json.loads(call.body or b"")


def mime_of(call: HttpCall) -> str:
    raw = body_of(call)["raw"]
    return base64.urlsafe_b64decode(raw + "=" * (-len(raw) % 4)).decode()


# What is sent -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", [slack(), slack_component()])
def test_a_slack_message_is_one_post_with_a_bearer_token(tool: Tool) -> None:
    call = call_of(tool)
    assert (call.method, call.url, call.service) == ("POST", "https://slack.com/api/chat.postMessage", "slack")
    assert call.headers == (
        ("Authorization", f"Bearer {SECRET}"),
        ("Content-Type", "application/json; charset=utf-8"),
    )
    assert call.body == b'{"channel":"#ops","text":"hi"}'
    assert call.secrets == {SECRET}
    assert (call.retry, call.pace, call.mode) == (None, None, "json")


@pytest.mark.parametrize("tool", [gmail(), gmail_component()])
def test_a_mail_is_one_post_with_a_bearer_token(tool: Tool) -> None:
    call = call_of(tool)
    url = "https://gmail.googleapis.com/gmail/v1/users/me/messages/send"
    assert (call.method, call.url, call.service) == ("POST", url, "gmail")
    assert call.headers == (("Authorization", f"Bearer {SECRET}"), ("Content-Type", "application/json"))
    assert list(body_of(call)) == ["raw"]
    assert mime_of(call).endswith('\r\nContent-Type: text/plain; charset="UTF-8"\r\n\r\nHi')
    assert call.secrets == {SECRET}
    assert call.failure_when == ()


@pytest.mark.parametrize(
    "tool",
    [slack(text="{{ d }}", channel="#{{ d }}"), slack_component(with_={"text": "{{ d }}", "channel": "#{{ d }}"})],
)
def test_data_reaches_slack_byte_for_byte_in_1_1(tool: Tool) -> None:
    call = call_of(tool, expressions={"d": HOSTILE})
    assert body_of(call) == {"channel": f"#{HOSTILE}", "text": HOSTILE}
    assert call.secrets == {SECRET}


@pytest.mark.parametrize(
    "tool", [slack(text="a {input} {{input}}"), slack_component(with_={"text": "a {input} {{input}}"})]
)
def test_data_reaches_slack_byte_for_byte_in_1_0(tool: Tool) -> None:
    call = call_of(tool, version="1.0", input=HOSTILE)
    assert body_of(call) == {"channel": "#ops", "text": f"a {HOSTILE} {HOSTILE}"}


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_an_author_cannot_refer_to_the_environment_in_a_text(version: str) -> None:
    written = "${TOKEN} $${TOKEN} ${HOME}"
    for tool in (slack(text=written, channel=written), slack_component(with_={"text": written, "channel": written})):
        assert body_of(call_of(tool, version=version)) == {"channel": written, "text": written}
    for mail in (gmail(body=written, to=written, subject=written), gmail_component(with_={"body": written})):
        assert SECRET not in mime_of(call_of(mail, version=version))
        assert mime_of(call_of(mail, version=version)).endswith(f"\r\n\r\n{written}")


@pytest.mark.parametrize(
    ("value", "text"), [(3.0, "3"), (True, "true"), (None, "null"), ([1, "a"], '[1,"a"]'), ({"a": 0.5}, '{"a":0.5}')]
)
def test_a_value_that_is_no_text_becomes_text(value: Any, text: str) -> None:
    for tool in (slack(text="{{ d }}"), slack_component(with_={"text": "{{ d }}"})):
        assert body_of(call_of(tool, expressions={"d": value}))["text"] == text
    assert body_of(call_of(slack_component(with_={"text": value or 7})))["text"] == (text if value else "7")


def test_a_tree_in_with_is_filled_with_typed_values_and_its_keys_are_not() -> None:
    tool = slack_component(with_={"text": {"{{ k }}": ["{{ d }}", "n {{ d }} ${TOKEN}"]}})
    call = call_of(tool, expressions={"d": 3})
    assert body_of(call)["text"] == '{"{{ k }}":[3,"n 3 ${TOKEN}"]}'


def test_all_expressions_of_a_message_are_evaluated_together() -> None:
    tool = gmail(to="{{ a }}@x.org", subject="{{ b }}", body="{{ c }}")
    done = played(tool, expressions={"a": 1, "b": 2, "c": 3})
    (evaluate,) = [effect for effect in done.effects if isinstance(effect, Evaluate)]
    assert [source.strip() for source in evaluate.sources] == ["a", "b", "c"]
    assert mime_of(done.calls[0]).startswith("To: 1@x.org\r\nSubject: 2\r\n")


def test_extract_is_kept_and_slacks_failures_are_rules() -> None:
    call = call_of(slack(extract="ts"))
    assert call.extract == "ts"
    assert call.failure_when == (
        {"path": "ok", "equals": False, "message_path": "error", "retryable": False},
        {"path": "ok", "exists": False, "retryable": False},
    )


def test_a_branch_runs_them_too() -> None:
    spec = a_spec(a_condition("execute_tool(send)"), tools=[slack()])
    done = play(spec, script=Script(expressions={"trigger.ok": True}, env={"TOKEN": SECRET}, tools=OK))
    assert done.line == "S C completed"


# Who is asked first -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", EVERY_TOOL)
def test_a_person_is_asked_only_where_the_file_says_so(tool: Tool) -> None:
    for says, line in ((None, "S C completed"), (False, "S C completed"), (True, "S A")):
        assert played(tool.model_copy(update={"requires_approval": says})).line == line


@pytest.mark.parametrize("tool", EVERY_TOOL)
def test_the_environment_is_read_after_the_approval(tool: Tool) -> None:
    asked = tool.model_copy(update={"requires_approval": True})
    done = played(asked, decisions=[True])
    assert [type(effect) for effect in done.effects] == [AskPerson, ReadEnvironment, CallTool]
    assert done.effects[1] == ReadEnvironment(names=("TOKEN",))
    assert done.calls[0].approved
    failed = played(asked, decisions=[True], env={"TOKEN": ""})
    assert failed.line == "S A F"
    assert "TOKEN is not set" in failed.last.error
    assert '"send"' in failed.last.error
    assert played(asked, decisions=[False]).line == "S A R"


@pytest.mark.parametrize(
    ("tool", "shown"),
    [
        (slack(), {"action": "slack_post_message", "channel": "#ops", "text": "hi", "token": "${TOKEN}"}),
        (
            gmail(),
            {"action": "gmail_send", "to": "bo@example.org", "subject": "Hello", "body": "Hi", "token": "${TOKEN}"},
        ),
        (
            slack_component(),
            {
                "action": "component",
                "use": "kampong/slack@1.0.0",
                "op": "post_message",
                "with": {"channel": "#ops", "text": "hi"},
                "secrets": {"token": "${TOKEN}"},
            },
        ),
    ],
)
def test_a_person_is_shown_the_final_texts_and_no_secret(tool: Tool, shown: dict[str, Any]) -> None:
    done = played(tool.model_copy(update={"requires_approval": True}), decisions=[True])
    assert done.pauses[0].action == {**shown, "tool": "send"}
    assert SECRET not in repr(done.events) + repr(done.pauses) + repr(done.effects)


def test_every_text_counts_for_the_digest_and_the_tokens_value_does_not() -> None:
    def digest(tool: Tool, **script: Any) -> str:
        return played(tool.model_copy(update={"requires_approval": True}), **script).pauses[0].digest

    tools: list[Tool] = [
        slack(),
        slack(text="ho"),
        slack(channel="#o"),
        slack(token="${B}"),
        slack_component(),
        gmail(),
    ]
    tools += [gmail(body="b"), gmail(subject="s"), gmail(to="t"), gmail_component(with_={"body": "b"})]
    assert len({digest(tool) for tool in tools}) == len(tools)
    assert digest(slack()) == digest(slack(), env={"TOKEN": "another"})
    assert digest(slack()) == digest(slack(text="{{ d }}"), expressions={"d": "hi"})


# What cannot be sent ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["to", "subject"])
@pytest.mark.parametrize("end", ["\r\nBcc: eve@example.org", "\n", "\r", "\u2028", "\x85", "\x00"])
def test_a_line_break_from_data_in_a_mails_head_asks_nobody_and_sends_nothing(field: str, end: str) -> None:
    for tool in (gmail(**{field: "a{{ d }}"}), gmail_component(with_={field: "a{{ d }}"})):
        done = played(tool.model_copy(update={"requires_approval": True}), expressions={"d": end})
        assert done.line == "S F"
        assert f'"{field}"' in done.last.error
        assert "eve" not in done.last.error


@pytest.mark.parametrize(
    "tool", [slack(channel="{{ d }}"), gmail(to="{{ d }}"), slack_component(with_={"channel": "{{ d }}"})]
)
def test_without_a_place_to_send_to_nobody_is_asked(tool: Tool) -> None:
    done = played(tool.model_copy(update={"requires_approval": True}), expressions={"d": " "})
    assert done.line == "S F"
    assert "is empty" in done.last.error


@pytest.mark.parametrize("tool", [slack(text="{{ d }}"), gmail(body="{{ d }}")])
def test_half_a_surrogate_pair_is_named(tool: Tool) -> None:
    assert "surrogate" in played(tool, expressions={"d": "\ud800"}).last.error


@pytest.mark.parametrize("tool", EVERY_TOOL)
@pytest.mark.parametrize("token", ["x1\n", "x1\r\nX-Evil: 1", " x1", "xö1", "x1\x00", "\ud800"])
def test_a_variable_that_holds_no_token_is_named_and_not_shown(tool: Tool, token: str) -> None:
    done = played(tool, env={"TOKEN": token})
    assert done.line == "S F"
    assert done.calls == []
    assert all(words in done.last.error for words in ('"send"', "TOKEN", "Nothing was sent"))
    assert token not in done.last.error


def test_a_component_that_cannot_run_fails_before_a_template_is_read() -> None:
    tool = slack_component(with_={"text": "{{ d }}"}, op="delete", requires_approval=True)
    done = played(tool, expressions={"d": "x"})
    assert done.line == "S F"
    assert not done.effects
    assert '"delete"' in done.last.error


def test_what_slack_says_fails_the_step() -> None:
    done = played(slack(), tools={"send": [ToolFailed(error="channel_not_found")]})
    assert (done.line, done.last.error) == ("S F", "channel_not_found")

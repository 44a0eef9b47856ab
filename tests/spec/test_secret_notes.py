"""A var whose default is a secret of the environment is data: what would write it out is noted (ST-5)."""

from __future__ import annotations

import pytest

from tests.spec.specs import accepted, spec
from workflows.spec.errors import Note
from workflows.spec.vars_read import ALL, vars_read

VARS = """\
vars:
  token: {type: string, default: "${MY_API_TOKEN}"}
  page_size: {type: number, default: 50}
  region: {type: string, default: "${REGION}"}
  around: {type: string, default: "Bearer ${MY_API_TOKEN}"}
  given: {type: string}
"""
HTTP = "name: t, action: http_request, method: POST, url: 'https://x.test/'"
SLACK = "name: t, action: slack_post_message, token: '${SLACK_TOKEN}'"
MAIL = "name: t, action: gmail_send, token: '${MAIL_TOKEN}', to: a@x.test"
POLL = "type: poll, every: 1m, tool: t"
T = "{{ vars.token }}"
R = "{{ vars.region }} {{ vars.page_size }} {{ vars.around }} {{ vars.given }}"


def noted(rest: str, version: str) -> tuple[str, list[Note]]:
    text = spec(rest, version).replace("agent:\n", f"{VARS}agent:\n", 1)
    return text, [note for note in accepted(text).notes if note.code == "secret_var_written"]


def step(keys: str) -> str:
    return f"  workflow:\n    - {{step: s, {keys}}}\n"


def tool(keys: str) -> str:
    return f"  tools:\n    - {{{keys}}}\n"


#: version, the agent's rest with `#` for a template; where it is told
TEXTS = [
    ("1.1", step("type: approval, message: '#'"), "agent.workflow.0.message"),
    ("1.2", step("type: approval, message: 'a # b'"), "agent.workflow.0.message"),
    ("1.2", step("type: once, ttl: 1h, key: '#'"), "agent.workflow.0.key"),
    ("1.2", step("type: open, key: a, value: {a: [{b: 'of #'}]}"), "agent.workflow.0.value.a.0.b"),
    ("1.2", step("type: open, key: '#', value: 1"), "agent.workflow.0.key"),
    ("1.2", step("type: close, key: '#'"), "agent.workflow.0.key"),
    ("1.2", "  trigger: {type: webhook, dedupe: '#'}\n", "agent.trigger.dedupe"),
    ("1.1", tool(f"{SLACK}, channel: c, text: '#'"), "agent.tools.0.text"),
    ("1.1", tool(f"{SLACK}, channel: '#', text: t"), "agent.tools.0.channel"),
    ("1.1", tool(f"{MAIL}, subject: '#', body: b"), "agent.tools.0.subject"),
    ("1.2", tool(f"{MAIL}, subject: s, body: '#'"), "agent.tools.0.body"),
    ("1.1", tool("name: t, action: component, use: a/b@1.0.0, op: o, with: {to: ['#']}"), "agent.tools.0.with.to.0"),
    ("1.1", tool(f"{HTTP}, requires_approval: true, body: {{json: {{a: '#'}}}}"), "agent.tools.0.body.json.a"),
    ("1.2", tool(f"{HTTP}, approval: {{expires_in: 1h}}, headers: {{X-A: '#'}}"), "agent.tools.0.headers.X-A"),
]


@pytest.mark.parametrize(("version", "rest", "where"), TEXTS)
def test_a_kept_text_that_reads_a_secret_is_noted_at_its_line(version: str, rest: str, where: str) -> None:
    text, (note,) = noted(rest.replace("#", T), version)

    assert note.where == where
    assert note.line is not None
    assert T in text.splitlines()[note.line - 1]
    assert "vars.token" in note.message
    assert "${MY_API_TOKEN}" in note.message


@pytest.mark.parametrize(("version", "rest", "where"), TEXTS)
def test_no_other_var_is_noted(version: str, rest: str, where: str) -> None:
    assert noted(rest.replace("#", R), version)[1] == []


@pytest.mark.parametrize(
    ("key", "expressions"),
    [
        ("items", "items: 'orders.{\"a\": $$.vars.token}', key: id"),
        ("key", "items: orders, key: 'vars.token & id'"),
        ("cursor", "items: orders, key: id, cursor: '$.vars.token'"),
    ],
)
def test_so_is_what_a_poll_keeps(key: str, expressions: str) -> None:
    text, (note,) = noted(f"  trigger: {{{POLL}, {expressions}}}\n" + tool(HTTP.replace("POST", "GET")), "1.2")

    assert note.where == f"agent.trigger.{key}"
    assert note.line is not None
    assert "type: poll" in text.splitlines()[note.line - 1]


def test_a_poll_without_the_word_is_given_no_vars_and_a_filter_writes_none() -> None:
    rest = f"  trigger: {{{POLL}, items: 'orders[t = $$.vars.token]', key: $, cursor: '**.last'}}\n"
    assert noted(rest + tool(HTTP.replace("POST", "GET")), "1.2")[1] == []


@pytest.mark.parametrize(
    "rest",
    [
        # Nothing of these calls is kept, and nobody is shown them.
        tool(f"{HTTP}, body: {{json: {{a: '{T}'}}}}"),
        step(f"action: a, query: '{T}'"),
        step("type: condition, if: 'vars.token = input', then: request_human_approval, else: request_human_approval"),
        step("type: approval, message: 'vars.token, {vars.token} and {{ trigger.vars.token }}'"),
        step("type: approval, message: 'Is {{ vars.region }} it, or vars.token {{ \"vars.token\" }}'"),
    ],
)
def test_what_is_not_kept_or_no_reading_is_no_finding(rest: str) -> None:
    assert noted(rest, "1.1")[1] == []


def test_several_secrets_of_one_text_are_one_note() -> None:
    more = 'vars:\n  key: {type: string, default: "${MY_KEY}"}\n'
    text = spec(step(f"type: approval, message: '{T} {{{{ vars }}}}'"))
    text = text.replace("agent:\n", f"{VARS.replace('vars:', more.rstrip(), 1)}agent:\n", 1)
    (note,) = (note for note in accepted(text).notes if note.code == "secret_var_written")

    assert all(words in note.message for words in ("vars.key", "vars.token", "${MY_KEY}"))


@pytest.mark.parametrize(
    ("source", "read"),
    [
        ("vars.token", "token"), ("vars.`token`", "token"), ("`vars`.token", "token"), ("$.vars.token", "token"),
        ("a.b.($$.vars.token)", "token"), ("vars[0].token", "token"), ("$map(a, function($i){ vars.token })", "token"),
        ("a@$x.vars.token", "token"), ("trigger.(%.vars.token)", "token"), ("1 ?? vars.token", "token"),
        ("{'a': [-vars.token]}", "token"), ("vars.page_size + vars.n", "page_size n"), ("($v := vars.a; $v)", "a"),
        ('vars["token"]', ALL), ("vars", ALL), ("(vars).token", ALL), ("$lookup(vars, 'a')", ALL), ("vars.*", ALL),
        ("$$", ALL), ("$string($)", ALL), ("*.token", ALL), ("**.token", ALL), ("$.*", ALL),
        ("$map(a, function($i){ $ })", ALL),
        ("trigger.vars.token", ""), ("a.(vars.token)", ""), ("a[$$.vars.token = b]", ""), ("a^(vars.token)", ""),
        ("'vars.token'", ""), ("a.$", ""), ("$v.vars.token", ""), ("a.*", ""), ("/* vars.token */ 1", ""),
        ("a = = 1", ""),
    ],
)  # fmt: skip
def test_what_an_expression_reads_of_vars(source: str, read: str) -> None:
    assert vars_read(source) == frozenset(read.split())
    # The parser says the same of what is simple enough for the short cut.
    assert vars_read(f"({source})") == frozenset(read.split())

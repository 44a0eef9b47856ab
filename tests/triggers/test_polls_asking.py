"""What a poll asks and what it makes of the answer: by the generator alone, with the real evaluator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.approvals.policies import text_of
from tests.engine.scripted import Script, play
from tests.triggers.orders import TEXT, TRIGGER
from workflows.adapters.evaluator import shared
from workflows.engine.effects import CallTool, Evaluate, HttpCall, ReadEnvironment, ToolFailed, ToolOutput
from workflows.engine.polling import Polled, PollFailed, poll
from workflows.engine.situation import Situation
from workflows.engine.values import NOTHING
from workflows.spec.load import load
from workflows.spec.model import Spec
from workflows.spec.trigger_model import PollTrigger

NAMES = {"tool": "", "vars": "", "agent_id": "orders", "provider": "ollama", "url": "http://orders.test"}


def a_spec(
    items: str = "orders", key: str = "id", cursor: str | None = None, *, text: str = TEXT, **words: str
) -> Spec:
    more = f", cursor: '{cursor}'" if cursor else ""
    trigger = f"every: 1m, tool: list_orders, items: '{items}', key: '{key}'{more}"
    loaded = load(text.format(**{**NAMES, "trigger": trigger, **words}))
    assert loaded.spec is not None, loaded.errors
    return loaded.spec


class Asked:
    """One poll against an answer; `effects` are what it yielded."""

    def __init__(self, spec: Spec, answer: Any, cursor: Any = "") -> None:
        self.effects: list[Any] = []
        trigger = spec.agent.trigger
        assert isinstance(trigger, PollTrigger)
        asking = poll(spec, trigger, cursor)
        sent: Any = None
        while True:
            try:
                effect: Any = asking.send(sent)
            except StopIteration as end:
                self.polled: Polled = end.value
                return
            self.effects.append(effect)
            if isinstance(effect, CallTool):
                sent = answer if isinstance(answer, ToolFailed) else ToolOutput(value=answer)
            elif isinstance(effect, ReadEnvironment):
                sent = dict.fromkeys(effect.names, "west")
            else:
                assert isinstance(effect, Evaluate)
                sent = shared().evaluate(effect)

    @property
    def keys(self) -> list[str]:
        return [item.key for item in self.polled.items]

    @property
    def values(self) -> list[Any]:
        return [item.value for item in self.polled.items]

    @property
    def call(self) -> HttpCall:
        (call,) = [effect.call for effect in self.effects if isinstance(effect, CallTool)]
        return call


@pytest.mark.parametrize(
    ("items", "answer", "found"),
    [
        ("orders", {"orders": [{"id": 1}, {"id": 2}]}, [{"id": 1}, {"id": 2}]),
        ("orders", {"orders": []}, []),
        ("orders", {"other": 1}, []),
        ("orders", {"orders": None}, []),
        ("orders", {"orders": {"id": 1}}, [{"id": 1}]),
        ("orders[paid]", {"orders": [{"id": 1, "paid": True}, {"id": 2}]}, [{"id": 1, "paid": True}]),
        ("$", [{"id": 1}], [{"id": 1}]),
        ("$", [], []),
        ("$", {"id": 1}, [{"id": 1}]),
        ("$", None, []),
        ("$", NOTHING, []),
        ("$", False, [False]),
        ("pages.orders", {"pages": [{"orders": [1, 2]}, {"orders": [3]}]}, [1, 2, 3]),
    ],
)
def test_the_items_of_an_answer(items: str, answer: Any, found: list[Any]) -> None:
    """Nothing and null are no items, and a single value that is no list is one item."""
    key = "id" if found and isinstance(found[0], dict) else "$string($)"
    asked = Asked(a_spec(items, key), answer)
    assert asked.values == found
    assert [item.index for item in asked.polled.items] == list(range(len(found)))


@pytest.mark.parametrize(
    ("key", "item", "found"),
    [
        ("id", {"id": "a"}, "a"),
        ("id", {"id": 7}, "7"),
        ("id", {"id": 7.5}, "7.5"),
        ("id", {"id": 10**20}, "100000000000000000000"),
        ('id & "/" & at', {"id": 1, "at": 2}, "1/2"),
        ("$", "whole", "whole"),
        ("$[0]", ["first", "second"], "first"),
    ],
)
def test_a_key_is_a_text_or_a_number_as_its_text(key: str, item: Any, found: str) -> None:
    assert Asked(a_spec(key=key), {"orders": [item, item]}).keys == [found, found]


@pytest.mark.parametrize(
    ("item", "was"),
    [
        ({}, "nothing"),
        (None, "nothing"),
        ({"id": None}, "nothing"),
        ({"id": ""}, "an empty text"),
        ({"id": True}, "true or false"),
        ({"id": ["ana"]}, "a list"),
        ({"id": {"mail": "ana"}}, "an object"),
    ],
)
def test_anything_else_fails_and_names_the_item_and_never_what_is_in_it(item: Any, was: str) -> None:
    wanted = rf'^"key" of items\[2\] came to {was}; it must be a text that is not empty, or a number$'
    with pytest.raises(PollFailed, match=wanted):
        Asked(a_spec(), {"orders": [{"id": 1}, {"id": 2}, item]})


@pytest.mark.parametrize(
    ("cursor", "answer", "found"),
    [
        (None, {"next": 1}, NOTHING),
        ("next", {"next": "t-2"}, "t-2"),
        ("next", {}, NOTHING),
        ("next", {"next": None}, NOTHING),
        ("next", {"next": 0}, 0),
        ("next", {"next": {"page": 2}}, {"page": 2}),
        ("$max(orders.at)", {"orders": [{"id": 1, "at": 3}, {"id": 2, "at": 5}]}, 5),
    ],
)
def test_what_comes_to_nothing_keeps_the_old_position(cursor: str | None, answer: Any, found: Any) -> None:
    assert Asked(a_spec(cursor=cursor), answer).polled.cursor == found


def test_the_tool_reads_the_position(tmp_path: Path) -> None:
    spec = a_spec()
    assert Asked(spec, {}).call.url == "http://orders.test/orders?after="
    assert Asked(spec, {}, "t-2").call.url == "http://orders.test/orders?after=t-2"
    assert Asked(spec, {}, 17).call.url == "http://orders.test/orders?after=17"


def test_a_step_that_calls_the_tool_reads_from_the_beginning() -> None:
    text = TEXT.format(**NAMES, trigger=TRIGGER).partition("  workflow:")[0]
    loaded = load(f"{text}  workflow:\n    - {{step: all, type: tool, tool: list_orders}}\n")
    assert loaded.spec is not None, loaded.errors
    script = Script(tools={"list_orders": [ToolOutput(value=1)]}, expressions={"cursor": "from the scope"})
    played = play(loaded.spec, Situation(input="go"), script)
    (asked,) = [effect for effect in played.effects if isinstance(effect, Evaluate)]
    assert asked.scope["cursor"] == ""
    assert played.calls


def test_vars_stand_beside_what_is_read_and_never_in_an_item() -> None:
    vars = 'vars: {region: {type: string, default: "${REGION}"}}\n'
    answer = {"orders": [{"id": 1, "where": "west"}, {"id": 2, "where": "east"}]}
    spec = a_spec("orders[where = $$.vars.region]", "vars.region & id", "vars.region", vars=vars)
    asked = Asked(spec, answer)
    assert (asked.keys, asked.polled.cursor) == (["west1"], "west")
    assert Asked(a_spec("$", vars=vars), {"id": 5}).values == [{"id": 5}]
    (read,) = [effect for effect in asked.effects if isinstance(effect, ReadEnvironment)]
    assert read.names == ("REGION",)


def test_no_more_than_so_many_items() -> None:
    with pytest.raises(PollFailed, match=r'^"items" came to 10001 items, and a poll takes 10000 at most: let the tool'):
        Asked(a_spec("[1..10001]", "$string($)"), {})


def test_expressions_that_fail_are_named_and_quoted() -> None:
    for words, spec in (
        (r'^"items" failed: .*: \$number\(a\)$', a_spec("$number(a)")),
        (r'^"key" of items\[0\] failed: .*: \$number\(id\)$', a_spec(key="$number(id)")),
        (r'^"cursor" failed: .*: \$number\(a\)$', a_spec(cursor="$number(a)")),
    ):
        with pytest.raises(PollFailed, match=words):
            Asked(spec, {"a": "b", "orders": [{"id": "x"}]})


def test_what_no_row_can_hold_fails() -> None:
    with pytest.raises(PollFailed, match=r'^"key" of items\[0\] failed: .* half of a surrogate pair'):
        Asked(a_spec(key='"\\ud800"'), {"orders": [{}]})


def test_a_tool_that_fails_is_quoted_as_in_a_run() -> None:
    with pytest.raises(PollFailed, match="gone") as told:
        Asked(a_spec(), ToolFailed(error="gone"))
    assert str(told.value) == "gone"


def test_a_poll_is_no_run_and_gives_no_key_of_one() -> None:
    asked = Asked(a_spec(text=TEXT.replace("GET", "POST")), {})
    assert asked.call.method == "POST"
    assert "Idempotency-Key" not in dict(asked.call.headers)


def test_the_same_answer_gives_the_same_again() -> None:
    answer = {"orders": [{"id": 1, "at": 3}, {"id": 2, "at": 5}]}
    first, second = (Asked(a_spec(cursor="$max(orders.at)"), answer, "t") for _ in range(2))
    assert first.effects == second.effects
    assert first.polled == second.polled
    kinds = [type(effect).__name__ for effect in first.effects]
    assert kinds == ["Evaluate", "CallTool", *["Evaluate"] * 4]


APPROVED = {
    "a tool": "- {name: look, action: http_request, method: GET, url: 'URL/look', requires_approval: true}",
    "a policy": "- {name: look, action: http_request, method: GET, url: 'URL/look', approval: {recall: 1m}}",
    "a component": (
        "- {name: look, action: component, use: kampong/slack@1.0.0, op: post_message, with: {channel: c, text: t}, "
        "secrets: {token: '${CHAT}'}, requires_approval: true}"
    ),
}


@pytest.mark.parametrize("tool", APPROVED.values(), ids=APPROVED)
def test_a_polled_tool_never_asks_anybody(tool: str) -> None:
    """The file is refused; and where a tool asks all the same, nothing is called."""
    trigger = "  trigger: {type: poll, every: 1m, tool: look, items: rows, key: id}\n  workflow:"
    text = text_of("{step: sign, type: approval}").replace("  workflow:", trigger)
    look = next(line for line in text.splitlines() if "name: look" in line)
    loaded = load(text.replace(look, f"    {tool}"))
    (error,) = loaded.errors
    assert (error.where, "needs an approval" in error.message) == ("agent.trigger.tool", True), error
    free = load(text)
    assert free.spec is not None
    asks = free.spec.agent.tools[0].model_copy(update={"requires_approval": True})
    agent = free.spec.agent.model_copy(update={"tools": (asks,)})
    with pytest.raises(PollFailed, match="needs an approval itself"):
        Asked(free.spec.model_copy(update={"agent": agent}), {})

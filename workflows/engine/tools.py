"""Running a tool: find it, fill its templates, ask if it must be asked for, build, call (engine semantics 13)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeAlias

from workflows.engine import (
    components,
    connectors,
    deciding,
    editing,
    evaluating,
    gates,
    httpcall,
    jsontext,
    references,
    render11,
)
from workflows.engine.calling import Purpose
from workflows.engine.connectors import RenderedMessage
from workflows.engine.effects import CallTool, Fingerprint, HttpCall, ReadEnvironment, ToolFailed, ToolOutput
from workflows.engine.httpcall import RenderedBody, RenderedRequest
from workflows.engine.render11 import Rendered
from workflows.engine.values import Json, MaybeJson
from workflows.engine.walk import Advance, Place, StepFailed, Walk, outside, wrong_outcome
from workflows.spec import spans
from workflows.spec.model import ComponentTool, FailureRule, GmailTool, HttpTool, SlackTool, Tool
from workflows.spec.trigger_model import FIRST_CURSOR, PollTrigger

#: A tool with its templates filled: what a person is shown, and what is sent.
_Request: TypeAlias = RenderedRequest | RenderedMessage
_IDEMPOTENCY: Final = "Idempotency-Key"


def run_tool(walk: Walk, place: Place, name: str) -> Advance[MaybeJson]:
    """The tool's output, after every approval it needs; StepFailed or StepRejected otherwise.

    Where a rejection does not end the run, the output says that it was one, and nothing is called.
    """
    tool = _found(walk, place, name)
    request = yield from _ready(walk, place, tool, {})
    approved = _needs_approval(tool)
    if approved:
        request = _edited(request, walk, place)
        pause = gates.tool_pause(
            walk,
            place,
            tool=tool,
            action=request.shown(),
            marked=request.marked(),
            url_marks=(yield from _url_marks(request)),
        )
        decision = yield from deciding.pass_gate(walk, place, pause, call_inside)
        if not decision.approved:
            return deciding.output_of(decision)
    gates.no_gate_here(walk, place)
    return (yield from _called(walk, place, request, approved=approved))


def call_inside(walk: Walk, place: Place, name: str, purpose: Purpose) -> Advance[MaybeJson]:
    """A tool that a gate calls (spec 1.2: `on_decision`, `on_expire`, `check`); StepFailed if it needs approval."""
    tool = _found(walk, place, name)
    if _needs_approval(tool):
        raise StepFailed(f'Tool "{name}" needs an approval itself, so it cannot be called here. Nothing was sent.')
    request = yield from _ready(walk, place, tool, purpose.roots)
    return (yield from _called(walk, place, request, approved=False, purpose=purpose))


def _needs_approval(tool: Tool) -> bool:
    return components.needs_approval(tool) if isinstance(tool, ComponentTool) else bool(tool.requires_approval)


def _found(walk: Walk, place: Place, name: str) -> Tool:
    tool = walk.spec.agent.tool(name)
    if tool is None:
        raise StepFailed(f'Step "{place.step}": there is no tool named "{name}".')
    problem = components.problem(tool) if isinstance(tool, ComponentTool) else None
    if problem is not None:
        raise StepFailed(problem)
    return tool


def _ready(walk: Walk, place: Place, tool: Tool, more: Mapping[str, Json]) -> Advance[_Request]:
    """The tool with its templates filled; StepFailed when it could never be called."""
    request = yield from _rendered(walk, place, tool, {**_position(walk, tool), **more})
    conflict = request.conflict()
    if conflict is not None:
        raise StepFailed(conflict)
    return request


def _position(walk: Walk, tool: Tool) -> dict[str, Json]:
    """The polled tool in a step reads from the beginning: the position is the poll's alone (spec 1.2)."""
    trigger = walk.spec.agent.trigger
    polled = isinstance(trigger, PollTrigger) and trigger.tool == tool.name
    return {"cursor": FIRST_CURSOR} if polled else {}


def _edited(request: _Request, walk: Walk, place: Place) -> _Request:
    edits = walk.edits_for(place)
    if not edits:
        return request
    try:
        edited = editing.edited_request(request, edits)
    except editing.EditRefused as problem:
        raise StepFailed(f'Step "{place.step}": the change of {problem.path} cannot be made: {problem}.') from problem
    conflict = edited.conflict()
    if conflict is not None:
        raise StepFailed(conflict)
    return edited


def _called(
    walk: Walk, place: Place, request: _Request, *, approved: bool, purpose: Purpose | None = None
) -> Advance[MaybeJson]:
    call = yield from _built(request, approved)
    if walk.spec.is_1_2:
        call = idempotent(call, walk.situation.key_root, place, purpose)
    step = f"{place.step}.{purpose.what}" if purpose else place.step
    effect = CallTool(step=step, index=place.index, tool=request.tool, call=call)
    outcome = yield from outside(walk, effect)
    if isinstance(outcome, ToolFailed):
        raise StepFailed(outcome.error)
    if not isinstance(outcome, ToolOutput):
        raise wrong_outcome(effect, outcome)
    return outcome.value


def idempotent(call: HttpCall, root: str | None, place: Place, purpose: Purpose | None) -> HttpCall:
    """The call with a key that is the same whenever this chain makes it, so that its receiver can tell a repeat."""
    given = any(name.lower() == _IDEMPOTENCY.lower() for name, _ in call.headers)
    if root is None or call.method == "GET" or given:
        return call
    key = "-".join(filter(None, (root, str(place.index), purpose.key if purpose else None)))
    return replace(call, headers=(*call.headers, (_IDEMPOTENCY, key)))


def _url_marks(request: _Request) -> Advance[dict[str, str]]:
    """Marks of the present values that the url refers to: a switched host changes the digest (design 6).

    Where a message goes is the operator's to say, not the spec's.
    """
    names = request.url.refs if isinstance(request, RenderedRequest) else ()
    if not names:
        return {}
    marks: Mapping[str, str] = yield Fingerprint(names=names)
    return {name: marks[name] for name in names}


def _built(request: _Request, approved: bool) -> Advance[HttpCall]:
    env: dict[str, str] = {}
    if request.refs:
        read: Mapping[str, str | None] = yield ReadEnvironment(names=request.refs)
        env = {name: text for name in request.refs if (text := read.get(name))}
        missing = [name for name in request.refs if name not in env]
        if missing:
            names = ", ".join(missing)
            what = f"variables {names} are" if len(missing) > 1 else f"variable {names} is"
            raise StepFailed(f'Tool "{request.tool}": the environment {what} not set. Nothing was sent.')
    try:
        if isinstance(request, RenderedMessage):
            return connectors.build(request, env, approved=approved)
        return httpcall.build(request, env, approved=approved)
    except httpcall.BuildFailed as problem:
        raise StepFailed(str(problem)) from problem


# Filling the templates ---------------------------------------------------------------------------------------


def _rendered(walk: Walk, place: Place, tool: Tool, more: Mapping[str, Json]) -> Advance[_Request]:
    """The tool with its templates filled. All expressions of one tool are evaluated together, under one limit."""
    if isinstance(tool, HttpTool):
        return (yield from _rendered_request(walk, place, tool, more))
    return (yield from _rendered_message(walk, place, tool, more))


def _rendered_request(walk: Walk, place: Place, tool: HttpTool, more: Mapping[str, Json]) -> Advance[RenderedRequest]:
    tree = _templated(tool)
    if walk.spec.is_1_0:
        filled = references.fill10_tree(tree, walk.outputs, walk.situation.input)
        return _request(tool, filled, _content_type(tool), tuple(rule.as_json() for rule in tool.failure_when))
    content_type = _content_type(tool) or ""
    rules = [rule.as_json() for rule in tool.failure_when]
    sources = [render11.collect(part) for part in (tree, content_type, rules)]
    flat = tuple(source for part in sources for source in part)
    values = yield from evaluating.template_values(walk, place, flat, more)
    in_tree, in_type = len(sources[0]), len(sources[0]) + len(sources[1])
    return _request(
        tool,
        render11.fill(tree, values[:in_tree]),
        render11.fill_plain(content_type, values[in_tree:in_type]) or None,
        _filled_rules(tool.failure_when, values[in_type:]),
    )


def _templated(tool: HttpTool) -> dict[str, Json]:
    """The parts of the tool in which the environment can be referred to."""
    body: Json = None
    if tool.body is not None:
        body = {"json": tool.body.json_, "form": tool.body.form, "raw": tool.body.raw}[tool.body.kind]
    return {"url": tool.url, "headers": tool.headers, "query": tool.query, "body": body}


def _content_type(tool: HttpTool) -> str | None:
    return tool.body.content_type if tool.body is not None else None


def _request(
    tool: HttpTool, filled: dict[str, Rendered], content_type: str | None, rules: tuple[Json, ...]
) -> RenderedRequest:
    return RenderedRequest(
        tool=tool.name,
        method=tool.method,
        url=render11.text_of(filled["url"]),
        headers=_texts(filled["headers"]),
        query=_texts(filled["query"]),
        body=_body(tool, filled["body"], content_type),
        mode=tool.mode,
        extract=tool.extract or None,
        failure_when=rules,
        retry=tool.retry.model_dump() if tool.retry else None,
        pace=tool.pace.model_dump() if tool.pace else None,
    )


def _texts(filled: Mapping[str, Rendered]) -> dict[str, references.Text]:
    return {name: render11.text_of(node) for name, node in filled.items()}


def _body(tool: HttpTool, filled: Rendered, content_type: str | None) -> RenderedBody | None:
    if tool.body is None:
        return None
    content: Any = filled
    if tool.body.kind == "form":
        content = _texts(filled)
    elif tool.body.kind == "raw":
        content = render11.text_of(filled)
    return RenderedBody(kind=tool.body.kind, content=content, content_type=content_type)


# Messages: nothing in their texts refers to the environment ---------------------------------------------------


def _rendered_message(
    walk: Walk, place: Place, tool: SlackTool | GmailTool | ComponentTool, more: Mapping[str, Json]
) -> Advance[RenderedMessage]:
    action: connectors.Action
    match tool:
        case SlackTool():
            action, inputs = "slack_post_message", {"channel": tool.channel, "text": tool.text}
        case GmailTool():
            action, inputs = "gmail_send", {"to": tool.to, "subject": tool.subject, "body": tool.body}
        case ComponentTool():
            op = components.op_of(tool)
            action, inputs = op.action, {name: tool.with_[name] for name in op.inputs}
    if walk.spec.is_1_0:
        filled = _each_text(inputs, partial(references.fill10, outputs=walk.outputs, input=walk.situation.input))
    else:
        values = yield from evaluating.template_values(walk, place, render11.collect(inputs), more)
        filled = _each_text(inputs, partial(_filled, rest=iter(values)))
    return RenderedMessage(
        tool=tool.name,
        action=action,
        token=tool.secrets["token"] if isinstance(tool, ComponentTool) else tool.token,
        texts={name: jsontext.as_text(value) for name, value in filled.items()},
        extract=tool.extract or None,
        component=(tool.use, tool.op) if isinstance(tool, ComponentTool) else None,
    )


def _each_text(node: Json, fill: Callable[[str], Json]) -> Json:
    """The tree with every string filled, in order; keys never."""
    if isinstance(node, str):
        return fill(node)
    if isinstance(node, Mapping):
        return {key: _each_text(item, fill) for key, item in node.items()}
    return [_each_text(item, fill) for item in node] if isinstance(node, list | tuple) else node


def _filled(text: str, rest: Iterator[Json]) -> Json:
    """The text with the next values in it; a value by itself, with its type, where it is all of the text (10.2)."""
    parts = spans.parse(text)
    own = [next(rest) for part in parts if isinstance(part, spans.Span)]
    return own[0] if own and len(parts) == 1 else render11.fill_plain(text, own)


# Failure rules: templated in 1.1, and a reference to the environment means nothing in them --------------------

_TEXTS = ("path", "matches", "message_path")


def _filled_rules(rules: tuple[FailureRule, ...], values: list[Json]) -> tuple[Json, ...]:
    rest = iter(values)
    return tuple({key: _filled_rule(key, item, rest) for key, item in rule.as_json().items()} for rule in rules)


def _filled_rule(key: str, item: Json, rest: Iterator[Json]) -> Json:
    if not isinstance(item, str):
        return item
    filled = _filled(item, rest)
    return jsontext.as_text(filled) if key in _TEXTS else filled

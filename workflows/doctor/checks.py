"""The checks that contact nothing (engine semantics 17.5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from workflows import needs
from workflows.adapters import fixtures, models, wire
from workflows.doctor import addresses, hooks, order, storage, timing
from workflows.doctor.contributed import contributed
from workflows.doctor.findings import Check, Patient, failed, passed, warned
from workflows.engine import components
from workflows.engine.vars import VarsError, names_needed, resolve
from workflows.errors import ModelUnavailable
from workflows.registry import SERVED_ID, SERVED_ID_RULE
from workflows.spec.model import ComponentTool, HttpTool, Tool, VarDecl

#: Notes about what fails a step, or the run, that comes to it. All others are worth a look.
FATAL: Final = frozenset(
    {
        "unknown_tool",
        "unknown_branch_action",
        "tool_name_not_callable",
        "legacy_condition_shape",
        "legacy_condition_no_output",
        "base_url_not_http",
    }
)
#: Notes about what runs as it always did.
HARMLESS: Final = frozenset({"legacy_condition_syntax", "legacy_placeholder_syntax"})
_AREAS: Final[Mapping[str, str]] = {
    "unknown_tool": "tools",
    "duplicate_tool_name": "tools",
    "tool_name_not_callable": "tools",
    "extract_not_dotted": "tools",
    "escaped_credential": "tools",
    "reference_not_read": "environment",
    "base_url_not_http": "model",
    "base_url_ignored": "model",
    "guardrail_without_action": "guardrails",
    "guardrail_without_gate": "guardrails",
    "gate_without_threshold": "guardrails",
    "gate_never_confident": "guardrails",
    "placeholder_is_text": "spec",
    "default_not_expanded": "vars",
    "secret_var_written": "vars",
    "unknown_key": "spec",
    "knowledge_base_not_executed": "spec",
}


def examine(patient: Patient) -> list[Check]:
    """Everything that can be known without contacting anything."""
    return [
        *_model(patient),
        *_vars(patient),
        *(check for tool in patient.tools() for check in _tool(patient, tool)),
        *_notifier(patient),
        *hooks.look(patient),
        *timing.look(patient),
        *storage.look(patient),
        *_fixtures(patient),
        *_noted(patient),
        *order.too_early(patient),
        *_agent_id(patient),
        *contributed(patient),
    ]


def _model(patient: Patient) -> Iterator[Check]:
    block = patient.spec.agent.model
    try:
        client = models.client_for(patient.spec, patient.environ)
    except ModelUnavailable as problem:
        needed = " Every run needs one, also when no step asks it." if block is None else ""
        yield failed("model", problem.message + needed)
        return
    assert block is not None, "a client was made of it"
    assert isinstance(client, models.WireClient), "there is no other kind"
    key = f"its key is in {block.api_key_name}" if block.api_key_name else "a local model needs no key"
    try:
        wire.address(client.base)
    except wire.Unsendable as problem:
        setting = models.PROVIDERS[block.provider].setting
        if setting is not None:
            yield failed("model", f"the setting {setting} {problem}")
            return
    yield passed("model", f"{block.provider}, {block.name}; {key}")


# Vars ---------------------------------------------------------------------------------------------------------


def _vars(patient: Patient) -> Iterator[Check]:
    for name, decl in patient.spec.vars.items():
        yield _var(patient, name, decl)


def _var(patient: Patient, name: str, decl: VarDecl) -> Check:
    if not decl.has_default:
        return warned(
            "vars",
            f"vars.{name} has no default: give it to every run, with --var {name}=VALUE or as vars of POST /runs; "
            "a trigger cannot give it",
        )
    alone = patient.spec.model_copy(update={"vars": {name: decl}})
    variables = names_needed(alone, {})
    if not variables:
        return passed("vars", f"vars.{name} has a default")
    variable = variables[0]
    if not patient.has(variable):
        return failed(
            "vars",
            f"vars.{name}: the environment variable {variable} is not set or empty; set it, or give "
            "the var to each run",
        )
    try:
        resolve(alone, {}, patient.environ)
    except VarsError:
        # Its own words show the value.
        wanted = f"list of {decl.items or 'string'}s" if decl.type == "list" else decl.type
        return failed("vars", f"vars.{name}: what the environment variable {variable} holds is not a {wanted}")
    return passed("vars", f"vars.{name} reads {variable}, which is set")


# Tools --------------------------------------------------------------------------------------------------------


def _tool(patient: Patient, tool: Tool) -> Iterator[Check]:
    problem = components.problem(tool) if isinstance(tool, ComponentTool) else None
    if problem is not None:
        yield failed("components", problem)
        return
    if isinstance(tool, HttpTool):
        fault = addresses.problem(patient, tool)
        if fault is not None:
            yield failed("tools", f'tool "{tool.name}": its url {fault}')
        forbidden = addresses.refusal(patient, tool) if patient.mode != "replay" else None
        if forbidden is not None:
            yield failed("tools", f'tool "{tool.name}": {forbidden}')
    yield from _environment(patient, tool)


def _environment(patient: Patient, tool: Tool) -> Iterator[Check]:
    """Variables are read when the call is built, which is after a person approved it (engine semantics 13, 23.10)."""
    names = needs.variables_of(tool, is_1_0=patient.spec.is_1_0)
    unset = [name for name in names if not patient.has(name)]
    present = [name for name in names if patient.has(name)]
    asked = components.needs_approval(tool) if isinstance(tool, ComponentTool) else bool(tool.requires_approval)
    late = ", and that is found only after a person approved the call" if asked else ""
    for name in unset:
        yield failed("environment", f'tool "{tool.name}" reads the environment variable {name}, which is not set{late}')
    if present and asked:
        yield warned(
            "environment",
            f'tool "{tool.name}" reads {", ".join(present)} only after a person approved the call: set '
            "here, and every worker must have it too",
        )
    elif present:
        yield passed("environment", f'tool "{tool.name}" reads {", ".join(present)}: set')


def _notifier(patient: Patient) -> Iterator[Check]:
    notifier = patient.spec.agent.approval_notifier
    if notifier is not None and not patient.has(notifier.token_name):
        yield warned(
            "environment", f"approval_notifier reads the environment variable {notifier.token_name}, which is not set"
        )


def _fixtures(patient: Patient) -> Iterator[Check]:
    if patient.mode == "live":
        return
    folder = patient.fixtures
    problem = fixtures.why_not(folder, writing=patient.mode == "record")
    if problem is not None:
        yield failed("fixtures", f"{problem}; name another folder with --fixtures")
    elif patient.mode == "replay":
        for tool in patient.tools():
            if fixtures.any_for_tool(folder, tool.name):
                yield passed("fixtures", f'tool "{tool.name}" has a recording')
            else:
                yield failed(
                    "fixtures",
                    f'tool "{tool.name}" has no recording in {folder}; record one first: run_spec with --tools record',
                )


# The spec itself ----------------------------------------------------------------------------------------------


def _noted(patient: Patient) -> Iterator[Check]:
    rails = patient.spec.agent.guardrails
    hopeless = rails is not None and rails.fallback_action is None
    for note in patient.notes:
        if note.code in HARMLESS:
            continue
        line = f" (line {note.line})" if note.line is not None else ""
        message = f"{note.where}{line}: {note.message} [{note.code}]"
        fatal = note.code in FATAL or (note.code == "gate_never_confident" and hopeless)
        make = failed if fatal else warned
        yield make(_AREAS.get(note.code, "workflow"), message)


def _agent_id(patient: Patient) -> Iterator[Check]:
    agent_id = patient.spec.agent.id
    if not SERVED_ID.fullmatch(agent_id):
        yield warned("spec", f"agent id {agent_id!r} can be run here, but neither served nor stored: {SERVED_ID_RULE}")

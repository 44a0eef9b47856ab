"""The engine cases: which families run now and how, and what a case may hold.

Nothing in a case goes unread: an input, an expectation, an act or an answer that this runner does not know is an
error of the case (`CaseError`), never a check that is silently left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import yaml

from tests.conformance.matching import CaseError

Case: TypeAlias = dict[str, Any]

FILE: Final = Path(__file__).parent.parent / "cases" / "engine-cases.yaml"

#: One run in memory: spec, input, decisions in order, and what came of it.
IN_MEMORY: Final = (
    "events",
    "prompts",
    "guardrail",
    "condition-1.0",
    "condition-1.1",
    "template-1.0",
    "template-1.1",
    "trigger",
    "vars",
    "tool-approval",
    "http-request",
    "http-response",
    "failure-when",
    "redaction",
    "retry",
    "output-schema",
    "connectors",
)
#: A script of acts on the database, a list of calls over HTTP, a list of operations on a store.
PERSISTED: Final = "persisted"
SERVE: Final = "serve"
#: The same with clicks in a message that was posted to a Slack on loopback.
SLACK: Final = "slack"
#: Runs in memory one after the other, recorded and replayed in one folder.
FIXTURES: Final = "fixtures"
STORE: Final = "store"
#: Our commands as processes of their own; tests/surfaces/cli/test_cli_cases.py runs them.
CLI: Final = "cli"

#: Families that are not run yet, each with the reason. A family is in this table or it runs.
LATER: Final[Mapping[str, str]] = {}

#: What every case may say about itself; `quirk` and `disputed` are for the reader.
HEAD: Final = frozenset({"id", "family", "about", "quirk", "disputed", "expect"})

TOOLS: Final = "http://tools.test"
_MODEL: Final = "provider: ollama,"
_HTTP_ANSWER: Final = frozenset({"status", "headers", "json", "text", "base64", "error"})
_MODEL_ANSWERS: Final = ({"result", "confidence"}, {"object"}, {"malformed"}, {"error"})


def read_cases() -> list[Case]:
    """All cases of the file, in its order."""
    cases: list[Case] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return cases


CASES: Final = read_cases()


def of(*families: str) -> list[Case]:
    """The cases of these families."""
    return [case for case in CASES if case["family"] in families]


def named(case_id: str) -> Case:
    """The case with this id."""
    return next(case for case in CASES if case["id"] == case_id)


def known(what: str, given: Iterable[str], allowed: Iterable[str]) -> None:
    """CaseError for a key that nobody reads."""
    unknown = sorted(set(given) - set(allowed))
    if unknown:
        raise CaseError(f"{what}: this runner does not know {', '.join(unknown)}")


def checked_scripts(case: Case) -> None:
    """CaseError for a scripted answer that the fakes would take for something else."""
    for step, answers in (case.get("model") or {}).items():
        for answer in answers if isinstance(answers, list) else [answers]:
            if not isinstance(answer, str) and set(answer) not in _MODEL_ANSWERS:
                raise CaseError(f"model.{step}: an answer of an unknown kind: {answer}")
    for call, answers in (case.get("http") or {}).items():
        for answer in answers if isinstance(answers, list) else [answers]:
            known(f"http.{call}", answer, _HTTP_ANSWER)


def placed(value: Any, tools: str) -> Any:
    """The value with the address of the fake tool server in place of http://tools.test, in keys as well."""
    if isinstance(value, str):
        return value.replace(TOOLS, tools)
    if isinstance(value, list):
        return [placed(item, tools) for item in value]
    if isinstance(value, dict):
        return {placed(key, tools): placed(item, tools) for key, item in value.items()}
    return value


def with_model_at(spec: str, address: str) -> str:
    """The spec with its model at this address; all cases write the block alike."""
    if spec.count(_MODEL) != 1:
        raise CaseError(f"the spec does not hold `{_MODEL}` once, so its model cannot be given an address")
    return spec.replace(_MODEL, f'{_MODEL} base_url: "{address}",')

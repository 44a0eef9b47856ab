"""The doctor: what would stop a run is found without contacting anything, and no value is ever told."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path

import pytest
from pytest_django import Settings

from tests.conformance import cases
from tests.spec.noted import RAILS, condition, http, steps, tools
from tests.spec.specs import accepted, spec
from tests.spec.test_spec_cases import CASES as SPEC_CASES
from workflows.adapters.fixtures import Mode
from workflows.doctor import addresses, checks
from workflows.doctor.findings import Check, Patient
from workflows.spec.load import load
from workflows.spec.model import HttpTool
from workflows.spec.notes import CODES

MODEL = "  model: {provider: ollama, name: m}\n"
CLOUD = "  model: {provider: openai, name: m, api_key: '${MODEL_KEY}'}\n"
SLACK = "    - {name: tell, action: slack_post_message, token: '${SLACK_TOKEN}', channel: c, text: t}\n"


def patient(
    rest: str, version: str = "1.1", vars_: str = "", mode: str = "live", folder: str = "/nowhere", **env: str
) -> Patient:
    loaded = accepted(spec(rest, version).replace("agent:\n", f"{vars_}agent:\n", 1))
    assert loaded.spec is not None
    return Patient(
        spec=loaded.spec,
        notes=loaded.notes,
        environ=env,
        mode=mode,  # type: ignore[arg-type]
        fixtures=Path(folder),
    )


def found(one: Patient, status: str, area: str) -> list[str]:
    return [check.message for check in checks.examine(one) if (check.status, check.area) == (status, area)]


def failures(one: Patient) -> list[Check]:
    return [check for check in checks.examine(one) if check.status == "fail"]


@pytest.mark.parametrize(
    ("rest", "words"),
    [
        ("", ["ticket-desk", "model", "no step asks"]),
        (CLOUD, ["MODEL_KEY", "openai"]),
        ("  model: {provider: ollama, name: m, base_url: 'localhost:11434'}\n", ["http://localhost:11434", "line 7"]),
    ],
)
def test_a_model_that_cannot_be_asked_fails(rest: str, words: list[str]) -> None:
    (message,) = found(patient(rest), "fail", "model")
    assert all(word in message for word in words), message


def test_a_local_model_needs_no_key_and_a_cloud_model_its_variable() -> None:
    assert failures(patient(MODEL)) == []
    assert "MODEL_KEY" in found(patient(CLOUD, MODEL_KEY="k-secret"), "pass", "model")[0]


def test_an_operators_address_that_is_none_fails_by_the_name_of_its_setting(settings: Settings) -> None:
    settings.KAMPONG_OPENAI_API_URL = "api.example.net"
    (message,) = found(patient(CLOUD, MODEL_KEY="k"), "fail", "model")
    assert "KAMPONG_OPENAI_API_URL" in message


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_a_variable_that_a_tool_reads_and_nobody_set_fails_by_name_wherever_it_is_read(version: str) -> None:
    tool = http(
        ", headers: {X-A: '${IN_HEADER}'}, query: {a: '${IN_QUERY}', b: '$${ESCAPED}'}, "
        "body: {json: [{deep: 'x ${IN_BODY}'}]}"
    ).replace("https://example.net/", "https://example.net/${IN_URL}")
    told = " ".join(found(patient(MODEL + tools(tool, SLACK), version), "fail", "environment"))
    assert all(name in told for name in ("IN_HEADER", "IN_QUERY", "IN_BODY", "IN_URL", "SLACK_TOKEN"))
    assert "ESCAPED" not in told


def test_a_value_is_told_nowhere() -> None:
    env = {"SLACK_TOKEN": "s3cret-1", "COUNT": "s3cret-2", "HOST": "s3cret-3.example.net", "MODEL_KEY": "s3cret-4"}
    tool = http(", headers: {Authorization: 'Bearer ${SLACK_TOKEN}'}, requires_approval: true").replace(
        "https://example.net/", "https://${HOST}:x/"
    )
    one = patient(CLOUD + tools(tool, SLACK), vars_="vars: {n: {type: number, default: '${COUNT}'}}\n", **env)
    told = repr(checks.examine(one)) + repr(one)
    assert [check.area for check in failures(one)] == ["vars", "tools"]
    assert "s3cret" not in told
    assert "COUNT" in told


def test_what_is_read_only_after_an_approval_is_named() -> None:
    asking = http(", requires_approval: true, headers: {X-A: '${HERE}', X-B: '${GONE}'}")
    one = patient(MODEL + tools(asking), HERE="1")
    assert "GONE" in found(one, "fail", "environment")[0]
    assert "after a person approved" in found(one, "fail", "environment")[0]
    (warning,) = found(one, "warn", "environment")
    assert "HERE" in warning
    assert "every worker" in warning
    plain = patient(MODEL + tools(http(", headers: {X-A: '${HERE}'}")), HERE="1")
    assert found(plain, "warn", "environment") == []
    assert "HERE" in found(plain, "pass", "environment")[0]


@pytest.mark.parametrize(
    ("declaration", "env", "status", "words"),
    [
        ("{type: number, default: '${COUNT}'}", {}, "fail", ["vars.n", "COUNT", "not set"]),
        ("{type: number, default: '${COUNT}'}", {"COUNT": ""}, "fail", ["COUNT", "empty"]),
        ("{type: number, default: '${COUNT}'}", {"COUNT": "many"}, "fail", ["COUNT", "number"]),
        ("{type: list, items: number, default: '${COUNT}'}", {"COUNT": "1,x"}, "fail", ["list of numbers"]),
        ("{type: number, default: '${COUNT}'}", {"COUNT": "5"}, "pass", ["COUNT"]),
        ("{type: number, default: 5}", {}, "pass", ["vars.n"]),
        ("{type: number}", {}, "warn", ["--var n=VALUE"]),
    ],
)
def test_a_var_needs_a_value(declaration: str, env: dict[str, str], status: str, words: list[str]) -> None:
    (message,) = found(patient(MODEL, vars_=f"vars: {{n: {declaration}}}\n", **env), status, "vars")
    assert all(word in message for word in words), message


@pytest.mark.parametrize(
    ("url", "env", "problem"),
    [
        ("example.net/x", {}, "not an absolute"),
        ("ftp://example.net/x", {}, "not an absolute"),
        ("http://[::1/x", {}, "not a valid URL"),
        ("http://example.net:99999/", {}, "port"),
        ("${BASE}/x", {"BASE": "example.net"}, "not an absolute"),
        ("//example.net/{{ input }}", {}, "not an absolute"),
        ("${BASE}/x", {}, None),
        ("${BASE}/x", {"BASE": "https://example.net"}, None),
        ("{{ input }}", {}, None),
        ("https://{{ input }}:{{ input }}/{{ input }}?{{ input }}", {}, None),
        ("https://{{ '}}' }}.example.net/", {}, None),
    ],
)
def test_a_url_is_judged_as_far_as_it_is_known(url: str, env: dict[str, str], problem: str | None) -> None:
    one = patient(MODEL + tools(http().replace("'https://example.net/'", f'"{url}"')), **env)
    (tool,) = one.tools()
    assert isinstance(tool, HttpTool)
    fault = addresses.problem(one, tool)
    assert fault is None if problem is None else problem in (fault or "")


@pytest.mark.parametrize("url", ["https://example.net/{{ input }}", "https://{input}.example.net/{x}", "{s.a}/x"])
def test_what_a_step_fills_in_a_1_0_url_is_no_fault(url: str) -> None:
    one = patient(MODEL + tools(http().replace("https://example.net/", url)), "1.0")
    assert found(one, "fail", "tools") == []


@pytest.mark.parametrize(
    ("url", "env", "shown"),
    [
        ("https://example.net/{{ input }}", {}, "example.net:443"),
        ("http://example.net:8080", {}, "example.net:8080"),
        ("${BASE}/x", {"BASE": "http://10.1.2.3:81"}, "the host that BASE gives"),
        ("https://example.net/${BASE}", {"BASE": "x"}, "example.net:443"),
        ("https://{{ input }}/", {}, None),
        ("https://example.net{{ input }}/", {}, None),
        ("${BASE}/x", {}, None),
    ],
)
def test_the_host_of_a_call_is_known_only_when_nothing_in_a_run_can_change_it(
    url: str, env: dict[str, str], shown: str | None
) -> None:
    one = patient(MODEL + tools(http().replace("https://example.net/", url)), **env)
    (tool,) = one.tools()
    assert isinstance(tool, HttpTool)
    place = addresses.place(one, tool)
    assert (place.shown if place else None) == shown


def test_an_address_that_the_operator_does_not_allow_fails_without_its_value(settings: Settings) -> None:
    settings.KAMPONG_PRIVATE_ADDRESSES = []
    one = patient(MODEL + tools(http().replace("https://example.net/", "${BASE}/")), BASE="http://10.1.2.3")
    (message,) = found(one, "fail", "tools")
    assert "KAMPONG_PRIVATE_ADDRESSES" in message
    assert "10.1.2.3" not in message
    replayed = patient(MODEL + tools(http().replace("https://example.net/", "http://10.1.2.3/")), mode="replay")
    assert found(replayed, "fail", "tools") == []


def test_a_component_that_is_not_there_fails() -> None:
    part = "    - {name: part, action: component, use: acme/mailer@1.4.0, op: send}\n"
    (message,) = found(patient(MODEL + tools(part)), "fail", "components")
    assert "acme/mailer@1.4.0" in message


def test_notes_of_what_fails_a_step_are_failures_and_others_are_warnings() -> None:
    workflow = steps(condition("true", "page me"), "{step: go, type: tool, tool: nowhere}", "{step: go, action: a}")
    told = {
        check.message.rpartition("[")[2]: check.status for check in checks.examine(patient(MODEL + RAILS + workflow))
    }
    del told[next(key for key in told if "]" not in key)]
    assert told == {
        "unknown_branch_action]": "fail",
        "unknown_tool]": "fail",
        "duplicate_step_name]": "warn",
        "guardrail_without_gate]": "warn",
    }


@pytest.mark.parametrize(("action", "status"), [(", fallback_action: escalate_to_human", "warn"), ("", "fail")])
def test_a_guardrail_that_no_answer_can_satisfy(action: str, status: str) -> None:
    gate = (
        f"  guardrails: {{confidence_threshold: 0.7{action}}}\n  workflow:\n    - {{step: judge, action: a, "
        "confidence_gate: true, output_schema: {type: object, required: [confidence], "
        "properties: {confidence: {type: number, maximum: 0.5}}}}\n"
    )
    assert any("gate_never_confident" in message for message in found(patient(MODEL + gate), status, "guardrails"))


def test_a_combinator_of_1_0_is_a_warning() -> None:
    workflow = steps("{step: s, action: a}", condition("s.x == 1 and s.y == 2"))
    assert "legacy_condition_combinator" in found(patient(MODEL + workflow, "1.0"), "warn", "workflow")[0]


def test_a_replay_needs_a_recording_of_every_tool(tmp_path: Path) -> None:
    rest = MODEL + tools(http(), http(name="find it"))
    (tmp_path / "find.0123456789abcdef.json").write_text("{}")
    one = patient(rest, mode="replay", folder=str(tmp_path))
    assert '"find it"' in found(one, "fail", "fixtures")[0]
    (tmp_path / "find_it.0123456789abcdef.json").write_text("{}")
    assert found(one, "fail", "fixtures") == []
    assert failures(patient(rest, folder=str(tmp_path / "none"))) == []


def test_an_agent_that_cannot_be_served_is_a_warning() -> None:
    one = patient(MODEL)
    odd = one.spec.model_copy(update={"agent": one.spec.agent.model_copy(update={"id": "two words"})})
    messages = [check for check in checks.examine(Patient(spec=odd, fixtures=one.fixtures)) if check.status == "warn"]
    assert ["two words" in check.message for check in messages] == [True]


def test_a_step_that_reads_what_has_not_run_is_a_warning() -> None:
    tool = http(", body: {json: [{a: '{{ last.x }}'}]}")
    workflow = steps(
        "{step: one, action: a, query: '{{ two.text & one.text }}'}",
        "{step: two, type: tool, tool: find}",
        condition('one.text = "x" and $exists(last)', "execute_tool(find)", "three"),
        "{step: last, type: approval, message: '{{ one.text }} {{ three.approved }}'}",
    )
    told = found(patient(MODEL + tools(tool) + workflow), "warn", "workflow")
    pairs = [(message.split('"')[1], message.split('"')[3]) for message in told]
    assert pairs == [("one", "two"), ("one", "one"), ("two", "last"), ("three", "last")]
    assert "runs later" in told[0]
    assert "itself" in told[1]


def test_a_spec_of_many_steps_and_tools_is_examined_in_time_that_grows_with_it() -> None:
    many = tools(*(http(", headers: {X-A: '${A}'}", f"t{at}") for at in range(3000)))
    large = "{{ input }}" * 2000
    workflow = steps(*(f"{{step: s{at}, type: tool, tool: big}}" for at in range(1000)))
    one = patient(MODEL + many + http(f", body: {{raw: '{large}'}}", "big") + workflow, A="1")

    started = time.process_time()
    assert len(found(one, "pass", "environment")) == 3000
    assert time.process_time() - started < 20


@pytest.mark.parametrize("mode", ["live", "replay"])
def test_every_valid_case_is_examined_without_telling_a_value(mode: Mode, tmp_path: Path) -> None:
    texts = [case["yaml"] for case in SPEC_CASES if case["valid"]]
    texts += [case["spec"] for case in cases.CASES if isinstance(case.get("spec"), str)]
    examined = 0
    for text in texts:
        loaded = load(text)
        if loaded.spec is not None:
            environ = dict.fromkeys(re.findall(r"\$\{(\w+)\}", text), "s3cret value")
            one = Patient(spec=loaded.spec, notes=loaded.notes, environ=environ, mode=mode, fixtures=tmp_path)
            told = [*checks.examine(one), *checks.examine(replace(one, environ={}))]
            assert "s3cret" not in repr(told)
            examined += 1
    assert examined > 200


def test_the_doctor_knows_the_codes_of_notes() -> None:
    assert {*checks.FATAL, *checks.HARMLESS, *checks._AREAS} <= set(CODES)

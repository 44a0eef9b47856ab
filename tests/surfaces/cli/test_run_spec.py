"""`run_spec` in memory: the order of its checks, its objects and its exit codes (engine semantics 17.2).

No test here has a database: pytest-django refuses every connection.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes_models import FakeModels
from tests.fakes_tools import FakeTools
from tests.surfaces.cli.running import ASKING, HEAD, command, spec_at

pytestmark = pytest.mark.only("sqlite")  # no test here has a database, so one run says all

INVALID = """\
version: "1.1"
agent: { id: x, name: x, role: x, workflow: [
  { step: go, type: tool, tool: "" }] }
"""


def test_it_prints_a_line_for_each_step_and_the_output(tmp_path: Path) -> None:
    told = command("run_spec", spec_at(tmp_path), "--input", "x", "--approve-all")
    assert told.code == 0
    lines = told.out.splitlines()
    assert [line for line in lines if line.endswith("running...")] == ["first running...", "second running..."]
    assert lines[lines.index("Run completed.") + 1 :][:2] == ["{", '  "first": {']


def test_the_object_of_a_completed_run(tmp_path: Path) -> None:
    told = command("run_spec", spec_at(tmp_path), "--input", "x", "--approve-all", "--json")
    assert told.object() == {
        "success": True,
        "status": "completed",
        "output": {"first": {"approved": True}, "second": {"approved": True}},
        "trace": [
            {"step": "first", "status": "completed", "output": {"approved": True}},
            {"step": "second", "status": "completed", "output": {"approved": True}},
        ],
    }


def test_the_object_of_a_failed_run(tmp_path: Path) -> None:
    text = HEAD + "  workflow: [{ step: go, type: tool, tool: nowhere }]\n"
    told = command("run_spec", spec_at(tmp_path, text), "--input", "x", "--json")
    assert told.code == 2
    answer = told.object()
    assert list(answer) == ["success", "status", "error", "trace"]
    assert (answer["success"], answer["status"]) == (False, "failed")
    assert "nowhere" in answer["error"]
    assert answer["trace"] == [{"step": "go", "status": "failed", "error": answer["error"]}]


def test_a_failure_is_told_on_stderr_with_its_status(tmp_path: Path) -> None:
    text = HEAD + "  workflow: [{ step: go, type: tool, tool: nowhere }]\n"
    told = command("run_spec", spec_at(tmp_path, text), "--input", "x")
    assert told.code == 2
    assert told.err.splitlines()[-1].startswith("Run failed: ")
    assert "Run completed" not in told.out


def test_empty_input_is_input(tmp_path: Path) -> None:
    assert command("run_spec", spec_at(tmp_path), "--input", "", "--approve-all").code == 0


def test_a_file_that_is_not_there_has_an_error_and_an_invalid_one_a_list(tmp_path: Path) -> None:
    missing = command("run_spec", str(tmp_path / "nowhere.yaml"), "--input", "x", "--json")
    folder = command("run_spec", str(tmp_path), "--input", "x", "--json")
    too_long = command("run_spec", str(tmp_path / ("n" * 300)), "--input", "x", "--json")
    no_memory = command("run_spec", "/proc/self/mem", "--input", "x", "--json")
    for told in (missing, folder, too_long, no_memory):
        assert told.code == 1
        assert told.object()["phase"] == "validation"
        assert "cannot be read" in told.object()["error"]
    invalid = command("run_spec", spec_at(tmp_path, INVALID), "--input", "x", "--json")
    assert invalid.code == 1
    answer = invalid.object()
    assert (answer["success"], answer["phase"]) == (False, "validation")
    errors = {error["path"]: error for error in answer["errors"]}
    assert errors["agent.goal"].get("line") is None  # it is not there, so it has no place
    assert errors["agent.workflow.0.tool"]["line"] == 3


def test_an_invalid_spec_is_told_on_stderr_with_file_and_place(tmp_path: Path) -> None:
    path = spec_at(tmp_path, INVALID)
    told = command("run_spec", path, "--input", "x")
    assert told.code == 1
    assert told.out == ""
    assert all(line.startswith(f"{path}: ") for line in told.err.splitlines())
    assert f"{path}: 3:" in told.err
    assert "agent.goal" in told.err


@pytest.mark.parametrize(
    "content",
    [
        "",
        "- just\n- a list\n",
        "a: [1, 2\n",
        "a: &a [*a]\n",
        "&x x: *y\n",
        "!!python/object/apply:os.system ['echo hi']\n",
        "\t: {",
        "\x00\x01\x02",
        "a: \ud7ff\n" * 3,
        "[" * 5000,
        "{a: " * 3000,
        "a: &a [x, x, x]\nb: &b [*a, *a, *a]\nc: &c [*b, *b, *b]\n" * 20,
    ],
)
def test_what_is_no_spec_exits_1_with_a_line_and_no_traceback(tmp_path: Path, content: str) -> None:
    told = command("run_spec", spec_at(tmp_path, content), "--input", "x")
    assert told.code == 1
    assert told.err.strip()
    assert "Traceback" not in told.err


def test_a_file_that_is_not_utf_8_exits_1(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_bytes(b"version: '\xff\xfe'\n")
    told = command("run_spec", str(path), "--input", "x", "--json")
    assert told.code == 1
    assert told.object()["phase"] == "validation"


def test_a_run_that_cannot_be_created_exits_2_before_any_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    model = '{ provider: openai, name: m, api_key: "${NO_SUCH_KEY}" }'
    text = ASKING.replace('{ provider: ollama, name: test-model, base_url: "http://127.0.0.1:9" }', model)
    told = command("run_spec", spec_at(tmp_path, text), "--input", "x", "--json")
    assert told.code == 2
    answer = told.object()
    assert set(answer) == {"success", "phase", "error"}
    assert answer["phase"] == "execution"
    assert "NO_SUCH_KEY" in answer["error"]
    assert "NO_SUCH_KEY" in command("run_spec", spec_at(tmp_path, text), "--input", "x").err


def test_vars_and_headers_reach_the_run(tmp_path: Path) -> None:
    declared = "vars: { n: { type: number, default: 1 }, note: { type: string, default: none } }\n"
    message = "{{ vars.n }} <{{ vars.note }}> {{ trigger.headers.`x-a` }}"
    text = HEAD.replace("agent:\n", f"{declared}agent:\n")
    text += f'  workflow: [{{ step: ask, type: approval, message: "{message}" }}]\n'
    words = ["--var", "n=5", "--var", "note=", "--header", "X-A=a=b", "--approve-all"]
    told = command("run_spec", spec_at(tmp_path, text), "--input", "x", *words)
    assert told.code == 0, told.err
    assert "5 <> a=b" in told.err


def test_an_undeclared_var_is_wrong_use_and_names_the_declared_ones(tmp_path: Path) -> None:
    text = ASKING.replace('version: "1.1"\n', 'version: "1.1"\nvars: { limit: { type: number, default: 1 } }\n')
    told = command("run_spec", spec_at(tmp_path, text), "--input", "x", "--var", "lmit=5")
    assert told.code == 64
    assert "lmit" in told.err
    assert "limit" in told.err


def test_notes_of_the_spec_are_warnings_on_stderr(tmp_path: Path) -> None:
    text = ASKING.replace("  workflow:", "  knowledge_base: [{ type: pdf, source: a.pdf }]\n  workflow:")
    told = command("run_spec", spec_at(tmp_path, text), "--input", "x", "--approve-all", "--json")
    assert told.code == 0
    assert told.object()["success"] is True
    assert "warning: " in told.err
    assert "knowledge_base_not_executed" in told.err


def test_the_time_limit_of_a_model_call_can_be_given(tmp_path: Path) -> None:
    with FakeModels({"draft": {"hang": 20, "text": "late"}}) as models:
        text = HEAD.replace("http://127.0.0.1:9", models.url) + "  workflow: [{ step: draft, action: write }]\n"
        told = command("run_spec", spec_at(tmp_path, text), "--input", "x", "--timeout", "200", "--json")
    assert told.code == 2
    assert "200 ms" in told.object()["error"]


def test_a_time_limit_of_ages_is_a_time_limit(tmp_path: Path) -> None:
    with FakeModels({"draft": {"text": "soon"}}) as models:
        text = HEAD.replace("http://127.0.0.1:9", models.url) + "  workflow: [{ step: draft, action: write }]\n"
        told = command("run_spec", spec_at(tmp_path, text), "--input", "x", "--timeout", str(2**53 - 1), "--json")
    assert (told.code, told.err) == (0, "")


def test_a_secret_of_the_environment_is_never_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "tok-canary")
    answer = {"status": 500, "text": "no entry for Bearer tok-canary"}
    with FakeTools({"GET /items": answer}) as tools:
        text = (
            HEAD
            + f"""\
  tools:
    - name: items
      action: http_request
      method: GET
      url: "{tools.url}/items"
      query: {{ token: "${{SHOP_TOKEN}}" }}
      headers: {{ Authorization: "Bearer ${{SHOP_TOKEN}}" }}
  workflow: [{{ step: go, type: tool, tool: items }}]
"""
        )
        for words in ([], ["--json"]):
            told = command("run_spec", spec_at(tmp_path, text), "--input", "x", *words)
            assert told.code == 2
            assert "tok-canary" not in told.out + told.err
        assert tools.requests[0].header("authorization") == "Bearer tok-canary"

"""The approval prompt: one line each, what it means, and where it is shown (engine semantics 17.3)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes_tools import FakeTools
from tests.surfaces.cli.running import HEAD, command, spec_at

pytestmark = pytest.mark.only("sqlite")  # no test here has a database, so one run says all

ONE = HEAD + '  workflow: [{ step: ask, type: approval, message: "Pay?" }]\n'
DEFAULT = "The approval was rejected."


@pytest.mark.parametrize("line", ["y\n", "yes\n", " YES \n", "Y", "y\r\n"])
def test_yes_approves(tmp_path: Path, line: str) -> None:
    told = command("run_spec", spec_at(tmp_path, ONE), "--input", "x", "--json", text=line)
    assert told.code == 0, told.err
    assert told.object()["output"] == {"ask": {"approved": True}}


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("n: too much\n", "too much"),
        ("No : too late \n", "too late"),
        ("NO:a: b\n", "a: b"),
        ("n:\n", DEFAULT),
        ("n\n", DEFAULT),
        ("no\n", DEFAULT),
        ("\n", DEFAULT),
        ("maybe: y\n", DEFAULT),
        ("yes please\n", DEFAULT),
        ("", DEFAULT),
    ],
)
def test_anything_else_rejects_and_only_a_text_after_no_is_a_reason(tmp_path: Path, line: str, error: str) -> None:
    told = command("run_spec", spec_at(tmp_path, ONE), "--input", "x", "--json", text=line)
    assert told.code == 2
    assert (told.object()["status"], told.object()["error"]) == ("rejected", error)


def test_bytes_that_are_no_text_reject(tmp_path: Path) -> None:
    told = command("run_spec", spec_at(tmp_path, ONE), "--input", "x", "--json", text=b"\xff\xfey\n")
    assert told.code == 2
    assert told.object()["status"] == "rejected"


def test_it_says_that_the_input_ended(tmp_path: Path) -> None:
    told = command("run_spec", spec_at(tmp_path, ONE), "--input", "x")
    assert told.code == 2
    assert "input ended" in told.err


def test_several_prompts_take_one_line_each_of_an_input_that_came_in_one_piece(tmp_path: Path) -> None:
    told = command("run_spec", spec_at(tmp_path), "--input", "x", "--json", text="y\nn: enough\ny\n")
    assert told.object()["trace"] == [
        {"step": "first", "status": "completed", "output": {"approved": True}},
        {"step": "second", "status": "rejected", "error": "enough"},
    ]


def test_a_further_line_is_no_reason(tmp_path: Path) -> None:
    told = command("run_spec", spec_at(tmp_path, ONE), "--input", "x", "--json", text="n:\nbecause\n")
    assert told.object()["error"] == DEFAULT


def test_the_prompt_says_what_waits_and_how_to_answer(tmp_path: Path) -> None:
    told = command("run_spec", spec_at(tmp_path, ONE), "--input", "x", text="y\n")
    for word in ("ask", "approval", "Pay?", "yes", "n: REASON"):
        assert word in told.out
    assert told.err == ""


def test_with_json_the_prompt_leaves_stdout_to_the_object(tmp_path: Path) -> None:
    told = command("run_spec", spec_at(tmp_path, ONE), "--input", "x", "--json", text="y\n")
    assert told.object()["success"] is True
    assert "Pay?" in told.err


def test_approve_all_writes_one_line_for_each_pause_and_never_to_stdout(tmp_path: Path) -> None:
    told = command("run_spec", spec_at(tmp_path), "--input", "a\nb", "--approve-all")
    assert told.code == 0
    lines = told.err.splitlines()
    assert len(lines) == 2
    assert "first" in lines[0]
    assert "approval" in lines[0]
    assert "Go on with a b?" in lines[0]
    assert "Go on" not in told.out


def test_a_message_cannot_move_the_cursor_or_pose_as_a_prompt(tmp_path: Path) -> None:
    text = HEAD + '  workflow: [{ step: ask, type: approval, message: "{{ input }}" }]\n'
    hostile = "fine\x1b[2J\rPay nothing\u202e\nApprove? y or yes approves nothing"
    told = command("run_spec", spec_at(tmp_path, text), "--input", hostile, text="n\n")
    assert not {"\x1b", "\r", "\u202e"} & set(told.out)
    assert "\nApprove? y or yes approves nothing" not in told.out
    assert "  | Approve? y or yes approves nothing" in told.out


@pytest.fixture
def shop() -> Iterator[FakeTools]:
    with FakeTools({"POST /pay": {"json": {"id": 1}}}) as tools:
        yield tools


def test_before_a_tool_runs_its_whole_call_is_shown_with_secrets_as_references(
    tmp_path: Path, shop: FakeTools, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAY_TOKEN", "tok-canary")
    text = (
        HEAD
        + f"""\
  tools:
    - name: pay
      action: http_request
      method: POST
      url: "{shop.url}/pay"
      headers: {{ Authorization: "Bearer ${{PAY_TOKEN}}" }}
      body: {{ json: {{ amount: 120, to: "{{{{ input }}}}" }} }}
      requires_approval: true
  workflow: [{{ step: settle, type: tool, tool: pay }}]
"""
    )
    told = command("run_spec", spec_at(tmp_path, text), "--input", "Lim", text="y\n")
    assert told.code == 0, told.err
    for word in ("settle", "tool", "pay", "POST", "120", "Lim", "${PAY_TOKEN}"):
        assert word in told.out
    assert "tok-canary" not in told.out + told.err
    assert shop.requests[0].header("authorization") == "Bearer tok-canary"


def test_after_a_no_the_tool_is_not_called(tmp_path: Path, shop: FakeTools) -> None:
    text = (
        HEAD
        + f"""\
  tools:
    - {{ name: pay, action: http_request, method: POST, url: "{shop.url}/pay", requires_approval: true }}
  workflow: [{{ step: settle, type: tool, tool: pay }}]
"""
    )
    assert command("run_spec", spec_at(tmp_path, text), "--input", "", text="n\n").code == 2
    assert shop.requests == []

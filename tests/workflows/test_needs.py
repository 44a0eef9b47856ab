"""A page can say before an approval that no worker has a variable that the call needs."""

from __future__ import annotations

from pathlib import Path

from tests.workbench import HEAD, PAYING, write_spec
from workflows.needs import environment_of


def test_the_names_are_those_that_the_author_wrote(tmp_path: Path) -> None:
    text = PAYING.replace('"{url}/pay"', '"${{PAY_HOST}}/pay?$${{NOT_ONE}}"').replace(
        'for: "{{{{ input }}}}"', 'for: "{{{{ input }}}}", note: ["x ${{PAY_NOTE}}"]'
    )
    spec = write_spec(tmp_path, text, url="http://127.0.0.1:9").spec
    assert environment_of(spec, "pay") == ("PAY_HOST", "PAY_NOTE", "PAY_TOKEN")
    assert environment_of(spec, "look") == ()
    assert environment_of(spec, "no such tool") == ()


def test_of_a_connector_it_is_the_token_and_of_a_component_its_secrets(tmp_path: Path) -> None:
    tools = """\
  tools:
    - {{name: tell, action: slack_post_message, token: "${{SLACK}}", channel: "${{NOT_READ}}", text: "${{NOR_THIS}}"}}
    - {{name: write, action: gmail_send, token: "${{MAIL}}", to: "${{NOT_READ}}", subject: s, body: "${{NOR_THIS}}"}}
    - name: part
      action: component
      use: kampong/slack@1.0.0
      op: post_message
      with: {{channel: "${{NOT_READ}}", text: t}}
      config: {{region: "${{NOR_THIS}}"}}
      secrets: {{token: "${{PART}}"}}
  workflow: [{{step: go, type: tool, tool: tell}}]
"""
    spec = write_spec(tmp_path, HEAD + tools).spec
    assert [environment_of(spec, name) for name in ("tell", "write", "part")] == [("SLACK",), ("MAIL",), ("PART",)]


def test_what_an_expression_spells_is_no_reference(tmp_path: Path) -> None:
    text = PAYING.replace('"{url}/pay"', "'https://x.test/{{{{ \"${{NOT_ONE}}\" }}}}${{YET_ONE}}'")
    spec = write_spec(tmp_path, text, url="http://127.0.0.1:9").spec
    assert environment_of(spec, "pay") == ("PAY_TOKEN", "YET_ONE")

"""A page can say before an approval that no worker has a variable that the call needs."""

from __future__ import annotations

from pathlib import Path

from tests.workbench import PAYING, write_spec
from workflows.needs import environment_of


def test_the_names_are_those_that_the_author_wrote(tmp_path: Path) -> None:
    text = PAYING.replace('"{url}/pay"', '"${{PAY_HOST}}/pay?$${{NOT_ONE}}"').replace(
        'for: "{{{{ input }}}}"', 'for: "{{{{ input }}}}", note: ["x ${{PAY_NOTE}}"]'
    )
    spec = write_spec(tmp_path, text, url="http://127.0.0.1:9").spec
    assert environment_of(spec, "pay") == ("PAY_HOST", "PAY_NOTE", "PAY_TOKEN")
    assert environment_of(spec, "look") == ()
    assert environment_of(spec, "no such tool") == ()

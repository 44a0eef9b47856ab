"""README and docs name what is there: commands, options, routes, codes, states, files; and their specs load."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.apps import apps
from django.core.management import get_commands, load_command_class
from django.urls import URLPattern

import approvals.api.urls
import workflows.api.urls
from tests.demo.starting import ROOT
from workflows.api.errors import STATUS
from workflows.models import Status
from workflows.spec.load import load
from workflows.spec.policy_shapes import POLICY_KEYS

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
OURS = {"workflows", "approvals"}


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def command_lines() -> Iterator[tuple[str, str]]:
    """Every call of manage.py in a block for the shell: the page, and the words after `manage.py`."""
    for page in PAGES:
        for block in blocks(page.read_text(encoding="utf-8"), "sh"):
            for line in block.replace("\\\n", " ").splitlines():
                found = re.search(r"manage\.py ([^|)#]+)", line)
                if found:
                    yield page.name, found[1].strip()


def test_the_first_spec_of_the_readme_loads_without_a_note() -> None:
    (spec,) = blocks(text_of("README.md"), "yaml")
    loaded = load(spec)
    assert (loaded.errors, loaded.notes) == ((), ())


def test_the_spec_of_the_page_about_specs_loads_without_a_note() -> None:
    (spec,) = blocks(text_of("docs/specs.md"), "yaml")
    loaded = load(spec)
    assert (loaded.errors, loaded.notes) == ((), ())


def test_the_spec_of_the_page_about_policies_loads_without_a_note() -> None:
    (text,) = blocks(text_of("docs/policies.md"), "yaml")
    loaded = load(text)
    assert (loaded.errors, loaded.notes) == ((), ())


def test_the_page_about_policies_has_every_key() -> None:
    page = text_of("docs/policies.md")
    assert [key for key in POLICY_KEYS if not re.search(rf"`{key}\b", page)] == []


@pytest.mark.parametrize(("page", "line"), list(command_lines()))
def test_every_command_line_is_one_that_the_command_takes(page: str, line: str) -> None:
    name, *words = shlex.split(line)
    app = get_commands()[name]
    command = app if not isinstance(app, str) else load_command_class(app, name)
    command.create_parser("manage.py", name).parse_args(words)  # exits at what it does not know


def test_every_make_target_that_is_named_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", text_of("Makefile"), re.MULTILINE))
    for page in PAGES:
        named = set(re.findall(r"(?:`|^|; |\d )make ([a-z-]+)", page.read_text(encoding="utf-8"), re.MULTILINE))
        assert named <= targets, page
    assert {"demo", "test", "lint", "format", "prove"} <= set(re.findall(r"make ([a-z]+)", text_of("README.md")))


def acts() -> list[str]:
    """`run_spec`, `runs list`, `runs show` ...: each way to call one of our commands."""
    found = []
    for name, app in sorted(get_commands().items()):
        if app in OURS:
            parser = load_command_class(str(app), name).create_parser("manage.py", name)
            parts = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
            found += [f"{name} {verb}" for part in parts for verb in part.choices] or [name]
    return found


def test_the_page_of_commands_has_all_of_ours() -> None:
    page = text_of("docs/commands.md")
    configured = {app.name for app in apps.get_app_configs()} & OURS
    assert configured == OURS
    assert {"serve", "approvals approve", "runs give_up", "audit verify"} <= set(acts())
    assert [act for act in acts() if not re.search(rf"`{act}\b", page)] == []


def routes() -> list[str]:
    patterns: list[URLPattern] = approvals.api.urls.urlpatterns + workflows.api.urls.urlpatterns
    named = [str(one.pattern) for one in patterns if one.name]
    return sorted({re.sub(r"<str:(\w+)>", r"<\1>", route).strip("/") for route in named})


@pytest.mark.parametrize("route", routes())
def test_the_page_of_http_has_every_route(route: str) -> None:
    assert re.search(rf"[ `]/{re.escape(route)}[ `]", text_of("docs/http.md"))


def test_the_page_of_http_has_every_code_with_its_status() -> None:
    told: dict[str, int] = {}
    for row in text_of("docs/http.md").partition("## Errors")[2].splitlines():
        if row.startswith("| `"):
            codes, statuses = re.findall(r"`(\w+)`", row.split("|")[1]), re.findall(r"\d{3}", row.split("|")[2])
            # one status for all codes of the row, or one each
            told |= dict(zip(codes, map(int, statuses * len(codes) if len(statuses) == 1 else statuses), strict=True))
    assert told == dict(STATUS)


def test_the_page_of_states_has_every_status() -> None:
    page = text_of("docs/promises.md")
    assert [status for status in Status.values if status not in page] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_to_a_file(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8"))
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert missing == []


def test_the_index_leads_to_every_page() -> None:
    index = text_of("docs/index.md")
    assert [page.name for page in PAGES[1:] if page.name != "index.md" and f"({page.name})" not in index] == []


def test_the_picture_is_small() -> None:
    assert (ROOT / "docs" / "decision-page.png").stat().st_size < 150_000

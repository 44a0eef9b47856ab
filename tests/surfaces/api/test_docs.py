"""The page about the interface names every route and every code."""

from __future__ import annotations

import re

import pytest

from approvals.api.urls import urlpatterns as approval_routes
from tests.conftest import ROOT
from workflows.api.errors import STATUS
from workflows.api.urls import urlpatterns as run_routes

PAGE = (ROOT / "docs" / "http.md").read_text(encoding="utf-8")
NAMES = {"run_id": "id", "agent_id": "agent id", "key": "key"}


def shown(route: str) -> str:
    """`runs/<str:run_id>/approve` as a reader knows it."""
    return "/" + re.sub(r"<str:(\w+)>", lambda found: f"<{NAMES[found[1]]}>", route)


@pytest.mark.parametrize("route", [str(route.pattern) for route in [*approval_routes, *run_routes] if route.name])
def test_every_route_is_on_the_page(route: str) -> None:
    assert shown(route).replace("/runs/<id>/approve", "/runs/<id or key>/approve") in PAGE


@pytest.mark.parametrize("code", sorted(STATUS))
def test_every_code_is_on_the_page_with_its_status(code: str) -> None:
    (row,) = (line for line in PAGE.splitlines() if line.startswith("| `") and f"`{code}`" in line.split("|")[1])
    assert row.split("|")[2].strip() == str(STATUS[code])

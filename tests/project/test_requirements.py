"""What gets installed is pinned, once."""

from __future__ import annotations

import re

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.conftest import ROOT


def requirements(name: str) -> list[Requirement]:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return [Requirement(line) for line in lines if line.strip() and not line.startswith(("#", "-"))]


def pins(name: str) -> dict[str, str]:
    """Each package of a file with the one version it is pinned to."""
    found: dict[str, str] = {}
    for requirement in requirements(name):
        match = re.fullmatch(r"==([\w.+!-]+)", str(requirement.specifier))
        assert match, f"{name}: {requirement} is not pinned to one version"
        key = canonicalize_name(requirement.name)
        assert key not in found, f"{name}: {key} stands there twice"
        found[key] = match[1]
    return found


def test_every_direct_dependency_has_the_version_of_the_constraints() -> None:
    constraints = pins("constraints.txt")
    for file in ("requirements.txt", "requirements-scale.txt", "requirements-dev.txt"):
        for name, version in pins(file).items():
            assert constraints.get(name) == version, f"{file} and constraints.txt disagree on {name}"


def test_constraints_hold_nothing_that_no_dependency_asks_for() -> None:
    from importlib.metadata import PackageNotFoundError, requires

    todo = [
        one
        for file in ("requirements.txt", "requirements-scale.txt", "requirements-dev.txt")
        for one in requirements(file)
    ]
    reached: set[str] = set()
    constraints = pins("constraints.txt")
    seen: set[tuple[str, frozenset[str]]] = set()
    while todo:
        requirement = todo.pop()
        name = canonicalize_name(requirement.name)
        mark = (name, frozenset(requirement.extras))
        if mark in seen:
            continue
        seen.add(mark)
        reached.add(name)
        assert name in constraints, f"{name} is installed and not pinned in constraints.txt"
        try:
            below = [Requirement(line) for line in requires(name) or []]
        except PackageNotFoundError:
            raise AssertionError(f"{name} is required and not installed") from None
        extras = requirement.extras or {""}
        todo += [
            one for one in below if not one.marker or any(one.marker.evaluate({"extra": e}) for e in extras | {""})
        ]
    assert set(constraints) == reached


def test_the_development_set_builds_on_the_run_time_set() -> None:
    for below in ("requirements.txt", "requirements-scale.txt"):
        assert f"-r {below}" in (ROOT / "requirements-dev.txt").read_text(encoding="utf-8").splitlines()
        assert "-c constraints.txt" in (ROOT / below).read_text(encoding="utf-8").splitlines()

"""The floors of the house: nothing knows what lies above it, and nothing knows itself in a circle."""

from __future__ import annotations

import ast
import sys

import pytest

from tests.architecture import contract, floors
from tests.architecture.floors import Import


def test_every_module_lies_on_exactly_one_floor() -> None:
    for module in floors.modules():
        floors.floor(module)
    for place in floors.FLOORS:
        package = place.split(".")[0]
        assert package in floors.PACKAGES, f"{place} is in no package of ours"


def test_no_module_imports_a_higher_floor_at_any_place_in_its_file() -> None:
    upward = [str(step) for step in floors.imports() if floors.floor(step.target) > floors.floor(step.module)]
    assert not upward, "\n".join(upward)


def test_packages_that_span_floors_hold_nothing() -> None:
    for name in floors.EMPTY:
        body = ast.parse(floors.modules()[name].read_text(encoding="utf-8")).body
        assert all(isinstance(node, ast.Expr) for node in body), f"{name}/__init__.py must stay empty"


def cycle(steps: tuple[Import, ...]) -> list[str]:
    """One circle of modules that import each other, or nothing."""
    graph: dict[str, list[str]] = {}
    for step in steps:
        graph.setdefault(step.module, []).append(step.target)
    done: set[str] = set()

    def walk(module: str, path: list[str]) -> list[str]:
        if module in path:
            return [*path[path.index(module) :], module]
        if module in done:
            return []
        for target in graph.get(module, []):
            if found := walk(target, [*path, module]):
                return found
        done.add(module)
        return []

    return next((found for module in graph if (found := walk(module, []))), [])


def test_no_modules_import_each_other_in_a_circle() -> None:
    found = cycle(floors.imports())
    assert not found, " -> ".join(found)


def test_a_circle_would_be_found() -> None:
    steps = [("a", "b"), ("b", "c"), ("c", "b")]
    found = cycle(tuple(Import(module=module, target=target, line=1) for module, target in steps))
    assert found == ["b", "c", "b"]


def test_an_import_is_seen_wherever_it_hides() -> None:
    source = """
def late():
    from approvals import services
    import_module("approvals.policy")
    apps.get_model("approvals", "ApprovalRequest")
    apps.get_model("approvals.ApprovalRequest")
"""
    seen = [target for node in ast.walk(ast.parse(source)) for target in floors._targets("workflows.desk", node)]
    assert sorted(seen) == ["approvals.models", "approvals.models", "approvals.policy", "approvals.services"]


def test_the_linters_contract_lists_every_leaf() -> None:
    assert contract.CONTRACT.read_text(encoding="utf-8") == contract.contract(), "stale: run `make format`"
    listed = set(contract.leaves())
    for module in floors.modules():
        held = [leaf for leaf in listed if module == leaf or module.startswith(f"{leaf}.")]
        assert len(held) == (0 if module in floors.EMPTY else 1), f"{module} is in {held}"


def test_the_store_knows_only_django() -> None:
    allowed = {"django", "__future__", *sys.stdlib_module_names}
    for module in floors.modules():
        if floors.floor(module) == 0:
            strangers = [target for target, _ in floors.external(module) if target.split(".")[0] not in allowed]
            assert not strangers, f"{module} imports {strangers}"


# What a module of floor 1 would need to reach a clock, the network, other processes or the environment.
OUTSIDE = {"asyncio", "concurrent", "http", "multiprocessing", "os", "random", "secrets", "signal", "socket", "sqlite3"}
OUTSIDE |= {"ssl", "subprocess", "tempfile", "time", "urllib.request"}


@pytest.mark.parametrize("package", ["workflows.spec", "workflows.engine"])
def test_the_engine_has_no_way_to_the_outside(package: str) -> None:
    for module in floors.modules():
        if module == package or module.startswith(f"{package}."):
            for target, line in floors.external(module):
                reached = [name for name in OUTSIDE if target == name or target.startswith(f"{name}.")]
                assert not reached, f"{module} line {line} imports {target}"

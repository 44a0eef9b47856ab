"""The floors of the house (design 2) as a table, and every import of ours as data."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("statestore", "workflows", "approvals", "kampong")

# Height of each place; the longest match decides. Floor 1 has two heights: the engine may read the spec's model,
# never the other way round. The two package files above several floors hold nothing and may be imported by all.
EMPTY = ("workflows", "approvals")
FLOORS: dict[str, float] = {
    "statestore": 0,
    "workflows.spec": 1.0,
    "workflows.engine": 1.5,
    "workflows": 2,
    "approvals": 3,
    "workflows.api": 4,
    "workflows.admin": 4,
    "workflows.live": 4,
    "workflows.management": 4,
    "approvals.api": 4,
    "approvals.admin": 4,
    "approvals.live": 4,
    "approvals.management": 4,
    "approvals.links": 4,
    "approvals.slack": 4,
    "kampong": 5,
}


@dataclass(frozen=True, kw_only=True)
class Import:
    """`module` imports `target` on `line`; both are modules of ours."""

    module: str
    target: str
    line: int

    def __str__(self) -> str:
        return f"{self.module} line {self.line} imports {self.target}"


def _name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules() -> dict[str, Path]:
    """Every module of the four packages, by dotted name."""
    return {_name(path): path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))}


def floor(module: str) -> float:
    """The height of a module; LookupError for one that the table does not place."""
    if module in EMPTY:
        return 0
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        found = FLOORS.get(".".join(parts[:length]))
        if found is not None:
            return found
    raise LookupError(f"{module} is on no floor: add its package to FLOORS")


def _resolve(target: str) -> str | None:
    """The module of ours that a dotted name means: itself, or the one that holds the name."""
    while target:
        if target in modules():
            return target
        target = target.rpartition(".")[0]
    return None


def _absolute(module: str, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    is_package = modules()[module].name == "__init__.py"
    parts = module.split(".")
    base = parts[: len(parts) - node.level + is_package]
    return ".".join([*base, node.module] if node.module else base)


LOADERS = {"import_module", "__import__", "import_string"}
BY_LABEL = {"get_model", "ForeignKey", "OneToOneField", "ManyToManyField"}


def _targets(module: str, node: ast.AST) -> Iterator[str]:
    """What one node imports, whether by statement, by a loader given a constant name, or by a model's label."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = _absolute(module, node)
        yield from (f"{base}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Call):
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        words = [arg.value for arg in node.args[:1] if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
        if called in LOADERS:
            yield from words
        elif called in BY_LABEL:
            yield from (f"{word.split('.')[0]}.models" for word in words)


def external(module: str) -> list[tuple[str, int]]:
    """What a module imports from outside our packages, with the line."""
    tree = ast.parse(modules()[module].read_text(encoding="utf-8"))
    return [
        (target, node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for target in _targets(module, node)
        if target.split(".")[0] not in PACKAGES
    ]


@cache
def imports() -> tuple[Import, ...]:
    """Every import of ours by ours, wherever in the file it stands: at the top, in a function, for types only."""
    found = []
    for module, path in modules().items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for target in _targets(module, node):
                resolved = _resolve(target)
                if resolved is not None and resolved != module:
                    found.append(Import(module=module, target=resolved, line=getattr(node, "lineno", 0)))
    return tuple(found)

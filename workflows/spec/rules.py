"""Rules that look at a whole spec of sound shape (format stage 3). A version picks the ones it has."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Any

from workflows.spec import output_schema, tool_shapes
from workflows.spec.agent_shapes import var_name_problem
from workflows.spec.errors import Path, clipped
from workflows.spec.model import Json
from workflows.spec.shapes import Faults

_ACTION_KEYS_OF_1_1 = ("output_schema", "instructions", "model", "temperature")


def var_names(tree: dict[str, Json], faults: Faults) -> None:
    for name in tree.get("vars", {}):
        problem = var_name_problem(name)
        if problem:
            faults.soft(("vars", name), problem)


def nothing_of_1_1(tree: dict[str, Json], faults: Faults) -> None:
    """What only a 1.1 spec may have."""
    if "vars" in tree:
        faults.soft(("vars",), '"vars" needs version "1.1"')
    for path, step in steps(tree):
        for key in _ACTION_KEYS_OF_1_1:
            if key in step:
                faults.soft((*path, key), f'"{key}" needs version "1.1"')


def output_schemas(tree: dict[str, Json], faults: Faults) -> None:
    for path, step in steps(tree):
        if "output_schema" not in step:
            continue
        schema, at = step["output_schema"], (*path, "output_schema")
        output_schema.schema_rules(schema, at, faults)
        if step.get("confidence_gate") and schema["type"] == "object":
            output_schema.gate_rules(schema, at, faults)


def component_config(tree: dict[str, Json], faults: Faults) -> None:
    for path, tool in tools(tree):
        if tool["action"] == "component":
            tool_shapes.config_is_not_secret(tool, path, faults)


def look_alikes(tree: dict[str, Json], faults: Faults) -> None:
    """Two names that look the same and are not would send a run, or a reader, to the wrong one."""
    for key, named in (("step", steps(tree)), ("name", tools(tree))):
        written: dict[str, str] = {}
        for path, part in named:
            name = part[key]
            first = written.setdefault(unicodedata.normalize("NFC", name), name)
            if first != name:
                faults.soft(
                    (*path, key),
                    f'"{clipped(name)}" looks like an earlier name but is spelled with other Unicode characters; '
                    "write both the same way",
                )


def steps(tree: dict[str, Json]) -> Iterator[tuple[Path, dict[str, Any]]]:
    for at, step in enumerate(tree["agent"]["workflow"]):
        yield ("agent", "workflow", at), step


def tools(tree: dict[str, Json]) -> Iterator[tuple[Path, dict[str, Any]]]:
    for at, tool in enumerate(tree["agent"].get("tools", [])):
        yield ("agent", "tools", at), tool

"""The development oracle, jsonatapy, in a process of its own, as it may abort. A JSON object a line in, one out."""

from __future__ import annotations

import json
import sys

import jsonatapy


def answer(line: str) -> dict[str, object]:
    request = json.loads(line)
    try:
        compiled = jsonatapy.compile(request["source"], timeout=5000, max_stack_depth=400)
        text = compiled.evaluate_json_or_none(json.dumps(request["scope"]))
    except ValueError as error:
        return {"error": str(error)}
    return {} if text is None else {"value": json.loads(text)}


for line in sys.stdin:
    sys.stdout.write(json.dumps(answer(line)) + "\n")
    sys.stdout.flush()

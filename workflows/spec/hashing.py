"""The hash that says whether two files are the same spec (design 6)."""

from __future__ import annotations

import hashlib
import json

from workflows.spec.model import Json


def spec_hash(tree: Json) -> str:
    """SHA-256, in hex, of a tree as the reader yields it, before defaults are filled and unknown keys dropped.

    Key order, comments, quoting and layout do not count, nor how a number is written; every value does.
    """
    return hashlib.sha256(canonical(tree).encode()).hexdigest()


def canonical(tree: Json) -> str:
    """The tree as JSON text that only depends on its values: keys sorted, numbers by value.

    `.inf` and `.nan`, which JSON has not, appear as the words Infinity and NaN.
    """
    return json.dumps(_by_value(tree), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _by_value(tree: Json) -> Json:
    if isinstance(tree, dict):
        return {key: _by_value(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_by_value(item) for item in tree]
    return int(tree) if isinstance(tree, float) and tree.is_integer() else tree

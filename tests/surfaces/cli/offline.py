"""A run made three times: live, recorded, and replayed with every server stopped. And secrets to look for."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

from tests.fakes_models import FakeModels
from tests.fakes_tools import FakeTools
from tests.surfaces.cli.running import Told, command

#: Recognisable, and different in each spelling: quote, backslash, blank, slash, plus, percent, umlaut, line of JSON.
SECRETS = {
    "SERVICE_TOKEN": 'canary"one\\ +/%é=',
    "SERVICE_KEY": "canary two&/+~*'",
    "MODEL_KEY": "sk-canary-three/+=",
}


def three_times(
    spec: Path, *words: str, tools: FakeTools, models: FakeModels, text: str = "", folder: Path | None = None
) -> tuple[Told, Told, Told]:
    """The command live, recorded, and replayed without the servers, which are stopped for good."""
    given = ["run_spec", str(spec), *words, "--json"]
    where = [] if folder is None else ["--fixtures", str(folder)]
    live = command(*given, text=text)
    recorded = command(*given, "--tools", "record", "--models", "record", *where, text=text)
    tools.close()
    models.close()
    replayed = command(*given, "--tools", "replay", "--models", "replay", *where, text=text)
    return live, recorded, replayed


def kept(folder: Path) -> dict[str, str]:
    """The text of every file below the folder, by its path in there."""
    return {str(path.relative_to(folder)): path.read_text("utf-8") for path in folder.rglob("*") if path.is_file()}


def leaks(folder: Path, secrets: Mapping[str, str]) -> list[str]:
    """Where a secret stands in a file, in any spelling, plain or packed into the values of the JSON."""
    found = []
    for name, text in kept(folder).items():
        seen = [text, *_texts(json.loads(text))]
        for secret in secrets.values():
            found += [f"{name}: {way!r}" for way in spellings(secret) for one in seen if way.lower() in one.lower()]
    return found


def spellings(secret: str) -> set[str]:
    """As it is, and as encoders write it."""
    escaped = {json.dumps(secret, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)}
    twice = {json.dumps(way)[1:-1] for way in escaped}
    return {secret, quote(secret), quote(secret, safe=""), quote_plus(secret), *escaped, *twice}


def _texts(node: Any) -> list[str]:
    if isinstance(node, dict):
        whole = [text for pair in node.items() for part in pair for text in _texts(part)]
        if node.get("bodyFormat") == "base64":
            whole.append(base64.b64decode(node["bodyRaw"]).decode("utf-8", "replace"))
        return whole
    if isinstance(node, list):
        return [text for item in node for text in _texts(item)]
    return [node] if isinstance(node, str) else []

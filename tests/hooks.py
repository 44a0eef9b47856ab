"""Specs whose runs a signed webhook starts."""

from __future__ import annotations

from pathlib import Path

from workflows.registry import SpecFile, read_spec

VARIABLE = "HOOK_SECRET"
TEXT = """\
version: "1.2"
agent:
  id: clerk
  name: Clerk
  role: Clerk
  goal: Look at what comes.
  model: {provider: ollama, name: test-model}
  trigger: TRIGGER
  workflow:
    - {step: look, type: approval, message: "Really?"}
"""
SIGNED = f'secret: "${{{VARIABLE}}}"'
BY_ID = 'dedupe: "{{ trigger.headers.`webhook-id` }}"'


def hooked(folder: Path, *keys: str, vars: str = "") -> SpecFile:
    """The spec with these keys of its trigger: `SIGNED`, `BY_ID`, `dedupe_ttl: 1h`."""
    text = TEXT.replace("TRIGGER", f"{{{', '.join(('type: webhook', *keys))}}}")
    path = folder / "clerk.yaml"
    path.write_text(text + vars, encoding="utf-8")
    return read_spec(path)

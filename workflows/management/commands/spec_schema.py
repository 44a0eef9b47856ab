"""`spec_schema`: the JSON Schema with which an editor completes and checks a spec (format 19)."""

from __future__ import annotations

from typing import Any

from workflows.management.answers import AnsweringCommand
from workflows.management.base import DONE
from workflows.spec import editor_schema


class Command(AnsweringCommand):
    help = "Print the JSON Schema of a spec file, for editors."

    def perform(self, **options: Any) -> int:
        self.show(editor_schema.text().rstrip("\n"))
        return DONE

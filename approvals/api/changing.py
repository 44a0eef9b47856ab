"""Changing what waits, and binding it to its changed spec, over HTTP (design 5.2)."""

from __future__ import annotations

from typing import ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from approvals.api.views import as_issued
from approvals.editing import edit_request
from approvals.rebinding import rebind
from workflows import reading
from workflows.api import bodies
from workflows.api.endpoint import Endpoint, answer


class EditApproval(Endpoint):
    """`POST /approvals/<key>/edit`: the run still waits, with the edits in what it shows."""

    fields: ClassVar[dict[str, bodies.Field]] = {
        "edits": bodies.Field(problem=bodies.is_anything, required=True),
        "reason": bodies.Field(problem=bodies.is_short_text),
        "digest": bodies.Field(problem=bodies.is_short_text),
    }

    def post(self, request: Request, key: str) -> Response:
        asked = self.json_object(self.fields)
        edited = edit_request(as_issued(key), actor=self.caller.actor(), **asked)
        return answer(**reading.run_json(edited.run))


class RebindApproval(Endpoint):
    """`POST /approvals/<key>/rebind`: the run still waits, under the spec as it is in its file now."""

    fields: ClassVar[dict[str, bodies.Field]] = {
        "reason": bodies.Field(problem=bodies.is_short_text, required=True),
        "digest": bodies.Field(problem=bodies.is_short_text),
    }

    def post(self, request: Request, key: str) -> Response:
        asked = self.json_object(self.fields)
        bound = rebind(as_issued(key), actor=self.caller.actor(), **asked)
        return answer(**reading.run_json(bound.run))

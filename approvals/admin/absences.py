"""While I am away: who decides meanwhile what lets itself be handed on, and for whom one stands in oneself."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils import timezone

from approvals import absences, people
from approvals.admin.access import actor_of, need_decide
from approvals.models import Absence
from approvals.policy import may_decide_at_all
from workflows.actors import Actor
from workflows.admin.acts import REFUSALS
from workflows.admin.base import ReadOnlyAdmin
from workflows.admin.words import clipped
from workflows.api.errors import failure_of
from workflows.errors import Invalid

LIST = "admin:approvals_absence_changelist"
#: More names than that are no list to choose from; any name can be typed.
MOST_NAMES = 200


class _Moment(forms.DateTimeInput):
    """A field for day and time that the browser helps with."""

    input_type = "datetime-local"

    def __init__(self) -> None:
        super().__init__(format="%Y-%m-%dT%H:%M")


class AbsenceForm(forms.Form):
    """When, and who stands in. Only a superuser says for whom."""

    user = forms.CharField(label="Who is away", max_length=150, required=False)
    substitute = forms.CharField(
        label="Who decides meanwhile", max_length=150, help_text="The user name of somebody who may decide."
    )
    starts_at = forms.DateTimeField(label="From", widget=_Moment)
    ends_at = forms.DateTimeField(label="Until", widget=_Moment)

    def __init__(self, actor: Actor, *, for_others: bool, **given: Any) -> None:
        super().__init__(**given)
        self._actor = actor
        if for_others:
            self.fields["user"].help_text = "Empty: you."
            self.fields["user"].widget.attrs |= {"list": "k-names", "autocomplete": "off"}
        else:
            del self.fields["user"]
        self.fields["substitute"].widget.attrs |= {"list": "k-names", "autocomplete": "off"}

    def perform(self) -> bool:
        """Set the absence. False, with the reason at its field, where it was refused."""
        if not self.is_valid():
            return False
        given = self.cleaned_data
        try:
            absences.set_absence(self._actor, **given | {"user": given.get("user") or None})
        except Invalid as refusal:
            for error in refusal.extra["errors"]:
                self.add_error(error["path"], f"{error['message'][:1].upper()}{error['message'][1:]}.")
        except REFUSALS as refusal:
            self.add_error(None, str(failure_of(refusal).body["error"]))
        return not self.errors


class AbsenceAdmin(ReadOnlyAdmin[Absence]):
    """For people who may decide: their own absences, and those of others in which they stand in."""

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        user = request.user
        return user.is_authenticated and user.is_active and may_decide_at_all(actor_of(request)).allowed

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        return [
            path("", wrap(self.changelist_view), name="approvals_absence_changelist"),
            path("<int:pk>/end/", wrap(self.end_view), name="approvals_absence_end"),
        ]

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """GET shows, POST adds."""
        actor = need_decide(request)
        others = bool(getattr(request.user, "is_superuser", False))
        form = AbsenceForm(actor, for_others=others, initial={"starts_at": timezone.now()})
        if request.method == "POST":
            form = AbsenceForm(actor, for_others=others, data=request.POST)
            if form.perform():
                name = clipped(form.cleaned_data["substitute"], 100)
                messages.success(request, f"Noted: {name} decides meanwhile what lets itself be handed on.")
                return HttpResponseRedirect(reverse(LIST))
        own = actor.user_id or 0
        return self.page(
            request,
            "approvals/admin/absences.html",
            title="While I am away",
            status=400 if form.errors else 200,
            form=form,
            rows=absences.everybodys() if others else absences.mine(own),
            others=others,
            standing_in=absences.standing_in(own),
            names=list(_names(own)),
            zone=timezone.get_current_timezone_name(),
        )

    def end_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """POST ends it."""
        actor = need_decide(request)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        try:
            absences.end_absence(actor, pk)
        except REFUSALS as refusal:
            told = failure_of(refusal)
            if told.status == 403:
                raise PermissionDenied(str(told.body["error"])) from refusal
            messages.warning(request, f"Nothing was changed: {told.body['error']}.")
        else:
            messages.success(request, "The absence is over: nobody stands in any more.")
        return HttpResponseRedirect(reverse(LIST))


def _names(own: int) -> Any:
    field = get_user_model().USERNAME_FIELD
    return people.holders().exclude(pk=own).order_by(field).values_list(field, flat=True)[:MOST_NAMES]

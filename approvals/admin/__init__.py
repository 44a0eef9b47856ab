"""The approvals app in the Django admin: the queue, the audit, the tokens, the outbox, linked Slack accounts."""

from __future__ import annotations

from django.contrib import admin
from knox.models import AuthToken

from approvals.admin.absences import AbsenceAdmin
from approvals.admin.audit import AuditEntryAdmin
from approvals.admin.notices import NoticeAdmin
from approvals.admin.requests import ApprovalRequestAdmin
from approvals.admin.slack_users import SlackUserAdmin
from approvals.admin.tokens import ApiTokenAdmin
from approvals.models import Absence, ApiToken, ApprovalRequest, AuditEntry, Notice, SlackUser

admin.site.register(Absence, AbsenceAdmin)
admin.site.register(ApprovalRequest, ApprovalRequestAdmin)
admin.site.register(AuditEntry, AuditEntryAdmin)
admin.site.register(ApiToken, ApiTokenAdmin)
admin.site.register(Notice, NoticeAdmin)
admin.site.register(SlackUser, SlackUserAdmin)

# Knox registers its own token model for pages that add tokens and show hashes; ours replaces it, and it has no table.
if admin.site.is_registered(AuthToken):
    admin.site.unregister(AuthToken)

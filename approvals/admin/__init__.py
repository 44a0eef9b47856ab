"""The approvals app in the Django admin: the queue, the audit, the tokens."""

from __future__ import annotations

from django.contrib import admin
from knox.models import AuthToken

from approvals.admin.audit import AuditEntryAdmin
from approvals.admin.requests import ApprovalRequestAdmin
from approvals.admin.tokens import ApiTokenAdmin
from approvals.models import ApiToken, ApprovalRequest, AuditEntry

admin.site.register(ApprovalRequest, ApprovalRequestAdmin)
admin.site.register(AuditEntry, AuditEntryAdmin)
admin.site.register(ApiToken, ApiTokenAdmin)

# Knox registers its own token model for pages that add tokens and show hashes; ours replaces it, and it has no table.
if admin.site.is_registered(AuthToken):
    admin.site.unregister(AuthToken)

from django.apps import AppConfig


class ApprovalsConfig(AppConfig):
    """Who may decide, the decision, its proof (floor 3)."""

    name = "approvals"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "Approvals"

    def ready(self) -> None:
        # Models must be loaded first.
        from approvals import audit, doctoring, expiry, reminding
        from approvals.deskwork import ApprovalDesk
        from approvals.notices import carriers, mail, pruning, sender, slack
        from approvals.repair import checks
        from approvals.retention import AskedOnRuns
        from workflows import desk, housekeeping
        from workflows.doctor import contributed
        from workflows.repair import contributed as repairs
        from workflows.retention import families

        desk.register(ApprovalDesk())
        families.register(AskedOnRuns())
        contributed.register("policies", doctoring.look)
        carriers.register("slack", slack.SlackCarrier())
        carriers.register("email", mail.MailCarrier())
        housekeeping.register("expiry", 1.0, expiry.expire_due, batch=expiry.BATCH)
        housekeeping.register("escalation", 5.0, reminding.escalate_due)
        housekeeping.register("reminders", 5.0, reminding.remind_due)
        housekeeping.register("sealing", 2.0, audit.seal, batch=audit.BATCH)
        housekeeping.register("notices", 1.0, sender.send_due, calls_out=True)
        housekeeping.register("old notices", 60.0, pruning.prune, batch=pruning.BATCH)
        repairs.register(*checks.CHECKS)

"""The audience of requests that were opened before there were rows for it; only what waits is looked for by it."""

import json

from django.db import migrations

BATCH = 500


def fill(apps, schema_editor):
    requests = apps.get_model("approvals", "ApprovalRequest").objects.using(schema_editor.connection.alias)
    audience = apps.get_model("approvals", "Audience")
    after = 0
    while True:
        waiting = requests.filter(status="open", audience=None, pk__gt=after).order_by("pk").values_list("pk", "policy")
        found = list(waiting[:BATCH])
        if not found:
            return
        rows = [audience(request_id=pk, kind=kind, name=name) for pk, policy in found for kind, name in to_whom(policy)]
        audience.objects.using(schema_editor.connection.alias).bulk_create(rows)
        after = found[-1][0]


def to_whom(policy):
    """As a request is addressed when it is opened."""
    held = json.loads(policy or "{}")
    approvers, escalate = held.get("approvers") or {}, held.get("escalate") or {}
    named = [("user", name) for name in approvers.get("users") or ()]
    named += [("group", name) for name in approvers.get("groups") or ()]
    later = [("later", name) for name in escalate.get("groups") or ()]
    return [*named, *later, *([("proxy", "")] if approvers.get("delegate") else [])]


class Migration(migrations.Migration):

    dependencies = [
        ('approvals', '0003_desk'),
    ]

    operations = [
        # Back: the table goes with the migration before this one.
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]

"""The one table of the store."""

from __future__ import annotations

from django.db import models

from statestore.fields import KeyField
from statestore.keys import shown


class StateRecord(models.Model):
    """One entry. Only `StateStore` writes it; read `value` through the store, which knows what has expired."""

    workspace = models.CharField(max_length=100, default="default")
    workflow = models.CharField(max_length=200)
    key = KeyField(max_length=420)
    #: JSON as text: a JSON column would reorder keys and change numbers.
    value = models.TextField()
    version = models.BigIntegerField(default=1)
    expires_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "workflow", "key"], name="staterecord_scope_key"),
        ]
        indexes = [
            models.Index(fields=["workspace", "key"], name="staterecord_workspace_key"),
            models.Index(fields=["expires_at"], name="staterecord_expires_at"),
        ]
        verbose_name = "state record"

    def __str__(self) -> str:
        return f"{self.workflow}: {shown(self.key)}"

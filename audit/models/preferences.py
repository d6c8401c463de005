"""Settings that a tenant's members make for pages: saved views and polling tools."""

from typing import ClassVar

from django.db import models

from audit.models.base import TenantQuerySet


class SavedView(models.Model):
    """A query of the call list that a user saved under a name, in one tenant."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant_id = models.UUIDField()
    id = models.UUIDField()
    user_id = models.BigIntegerField()
    name = models.TextField()
    query = models.TextField()
    created_at = models.DateTimeField()

    objects = TenantQuerySet["SavedView"].as_manager()

    class Meta:
        managed = False
        db_table = "saved_view"

    def __str__(self) -> str:
        return self.name


class PollingTool(models.Model):
    """A tool that is meant to be called again and again with the same arguments."""

    pk = models.CompositePrimaryKey("tenant_id", "tool_name")
    tenant_id = models.UUIDField()
    tool_name = models.TextField()
    created_at = models.DateTimeField()

    in_ledger: ClassVar = ("created_at",)
    ledger_id: ClassVar = "tool_name"

    objects = TenantQuerySet["PollingTool"].as_manager()

    class Meta:
        managed = False
        db_table = "polling_tool"

    def __str__(self) -> str:
        return self.tool_name

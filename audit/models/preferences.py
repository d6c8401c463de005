"""What a tenant's members make for pages: saved views, columns, boards and polling tools."""

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models

from audit.models.base import TenantQuerySet


class SavedView(models.Model):
    """What a page lists, saved by a user under a name, in one tenant."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant_id = models.UUIDField()
    id = models.UUIDField()
    user_id = models.BigIntegerField()
    name = models.TextField()
    query = models.TextField()
    """Of the page of calls a query of calls; of others what follows the ? of its address."""
    page = models.TextField()
    """A name in `audit.queries.saved_views.PAGES`."""
    is_shared = models.BooleanField()
    """Whether all members of the tenant are offered it."""
    created_at = models.DateTimeField()

    objects = TenantQuerySet["SavedView"].as_manager()

    class Meta:
        managed = False
        db_table = "saved_view"

    def __str__(self) -> str:
        return self.name


class PageChoice(models.Model):
    """What a user chose for a page, in one tenant: the columns of its table, and a default view."""

    pk = models.CompositePrimaryKey("tenant_id", "user_id", "page")
    tenant_id = models.UUIDField()
    user_id = models.BigIntegerField()
    page = models.TextField()
    columns = ArrayField(models.TextField(), null=True)
    """Names of columns; None: those of the page."""
    default_view = models.UUIDField(null=True)
    """The id of the view that the page opens with. It may have been deleted since."""

    objects = TenantQuerySet["PageChoice"].as_manager()

    class Meta:
        managed = False
        db_table = "page_choice"

    def __str__(self) -> str:
        return self.page


class Board(models.Model):
    """A page of charts and lists of calls that people made (`audit.queries.boards` reads it)."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant_id = models.UUIDField()
    id = models.UUIDField()
    user_id = models.BigIntegerField(null=True)
    name = models.TextField()
    range = models.TextField()
    panels = models.JSONField()
    changed_at = models.DateTimeField()
    changed_by = models.TextField()

    objects = TenantQuerySet["Board"].as_manager()

    class Meta:
        managed = False
        db_table = "board"

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

"""Definitions of tools as their servers serve them: rows as the ledger proves them.

Pages read them with the statements of `audit/sql/definitions.sql`.
"""

from typing import ClassVar

from django.contrib.postgres.fields import DateTimeRangeField
from django.db import models

from audit.models.base import TenantQuerySet


class StoredDefinition(models.Model):
    """One text that a server served as the definition of a tool."""

    pk = models.CompositePrimaryKey("tenant_id", "digest")
    tenant_id = models.UUIDField()
    digest = models.TextField()
    content = models.TextField()

    in_ledger: ClassVar = ("content",)
    ledger_id: ClassVar = "digest"

    objects = TenantQuerySet["StoredDefinition"].as_manager()

    class Meta:
        managed = False
        db_table = "definition"

    def __str__(self) -> str:
        return self.digest


class StoredServedDefinition(models.Model):
    """A definition of a tool of one server, and whether a person approved it."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant_id = models.UUIDField()
    id = models.UUIDField()
    server = models.TextField()
    tool_name = models.TextField()
    digest = models.TextField()
    first_seen_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()
    sighting_count = models.BigIntegerField()
    state = models.TextField()
    approved_at = models.DateTimeField(null=True)
    approved_by = models.TextField(null=True)
    approval_reason = models.TextField(null=True)
    approved_during = DateTimeRangeField()  # a multirange, which Django returns as psycopg reads it
    withdrawn_at = models.DateTimeField(null=True)
    withdrawn_by = models.TextField(null=True)
    withdrawal_reason = models.TextField(null=True)

    in_ledger: ClassVar = (
        *("server", "tool_name", "digest", "state"),
        *("approved_at", "approved_by", "approval_reason", "approved_during"),
        *("withdrawn_at", "withdrawn_by", "withdrawal_reason"),
    )

    objects = TenantQuerySet["StoredServedDefinition"].as_manager()

    class Meta:
        managed = False
        db_table = "served_definition"

    def __str__(self) -> str:
        return f"{self.tool_name} of {self.server}"


class StoredDefinitionChange(models.Model):
    """From when on a server served which definition of a tool."""

    pk = models.CompositePrimaryKey("tenant_id", "server", "tool_name", "seen_at", "digest")
    tenant_id = models.UUIDField()
    server = models.TextField()
    tool_name = models.TextField()
    seen_at = models.DateTimeField()
    digest = models.TextField()
    server_version = models.TextField(null=True)
    client = models.TextField(null=True)
    client_version = models.TextField(null=True)
    ledger_index = models.BigIntegerField(null=True)

    in_ledger: ClassVar = ("server_version", "client", "client_version")
    ledger_id: ClassVar = ("server", "tool_name", "seen_at", "digest")
    ledger_exempt: ClassVar = models.Q(digest="")
    """Changes that were only counted have no entry; what is in force then is unknown."""

    objects = TenantQuerySet["StoredDefinitionChange"].as_manager()

    class Meta:
        managed = False
        db_table = "definition_change"

    def __str__(self) -> str:
        return f"{self.tool_name} of {self.server} from {self.seen_at} on"

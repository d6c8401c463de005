"""Tools and their versions, as the registry keeps them.

The tables are SQL's (`migrations/0001_tool.sql`): their key is (tenant_id, id), and no
version is ever changed, which the application's grants see to. How a version comes about
is `tools_registry.versions`'.
"""

import json
from typing import Any, ClassVar

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.expressions import Expression
from django.urls import reverse

from tenants.managers import TenantManager
from tenants.models import Tenant, new_id


class JSONTextField(models.TextField):  # type: ignore[type-arg]  # not generic at run time
    """A JSON document kept as its text.

    jsonb would sort the members, whose order a schema's author chose and the guard's list of
    violations follows, and refuses U+0000, which is a legitimate `const`.
    """

    def from_db_value(
        self, value: str | None, expression: Expression, connection: BaseDatabaseWrapper
    ) -> Any:
        """The document."""
        return None if value is None else json.loads(value)

    def get_prep_value(self, value: Any) -> str | None:
        """Its text, ASCII only. Raises ValueError for NaN and infinities."""
        return None if value is None else json.dumps(value, allow_nan=False)


class Tool(models.Model):
    """A registered name; what it stands for is in its versions."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="+", editable=False)
    name = models.CharField(max_length=256)
    notes = models.TextField(
        blank=True, max_length=10_000, help_text="For people: who owns it, what to know about it."
    )
    latest_number = models.PositiveIntegerField(default=0, editable=False)
    """The number of the current version, and the lock behind the next one."""
    created_at = models.DateTimeField(auto_now_add=True)

    objects = TenantManager["Tool"]()

    class Meta:
        db_table = "tool"
        base_manager_name = "objects"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "name"], name="tool_tenant_name_uniq")
        ]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        """The tool's page."""
        return reverse("tool_detail", args=[self.pk])


class OnCollision(models.TextChoices):
    """What becomes of a version whose name is registered already. Source: the ADK's `Tool`."""

    THROW = "throw", "throw: refused"
    REPLACE = "replace", "replace: becomes the current version"
    KEEP = "keep", "keep: the registered one stays"


class ToolVersion(models.Model):
    """One immutable published contract of a tool."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="+", editable=False)
    tool = models.ForeignKey(Tool, models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField(editable=False)
    digest = models.CharField(max_length=71, editable=False)
    description = models.TextField()
    input_schema = JSONTextField()
    output_schema = JSONTextField(null=True, blank=True)
    trusted = models.BooleanField(default=False)
    ephemeral = models.BooleanField(default=False)
    on_collision = models.CharField(max_length=16, choices=OnCollision, default=OnCollision.THROW)
    meta = JSONTextField(default=dict, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.CharField(max_length=150, editable=False)
    """The user's name, copied: who published outlives the account. Empty if a key did."""
    created_by_key = models.CharField(max_length=16, editable=False)
    """The key's id, if an executor published it."""

    objects = TenantManager["ToolVersion"]()

    class Meta:
        db_table = "tool_version"
        base_manager_name = "objects"
        ordering: ClassVar = ["-number"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["tenant", "tool", "number"], name="tool_version_tenant_tool_number_uniq"
            ),
            models.UniqueConstraint(
                fields=["tenant", "digest"], name="tool_version_tenant_digest_uniq"
            ),
        ]

    def __str__(self) -> str:
        return f"version {self.number}"

    def get_absolute_url(self) -> str:
        """The version's page."""
        return reverse("tool_version", args=[self.tool_id, self.number])

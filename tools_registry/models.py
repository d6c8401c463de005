"""Tools and their versions, as the registry keeps them.

The tables are made in SQL (`migrations/schema/*.sql`). Their key is (tenant_id, id). No version
and no change is ever altered: the application has no grant for it. `tools_registry.versions`
publishes versions, `tools_registry.states` changes their state, `tools_registry.drafts` prepares
the next one.
"""

import json
from typing import Any, ClassVar

from django.contrib.postgres.fields import ArrayField
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
    owner = models.CharField(blank=True, max_length=200)
    """The person or team to ask."""
    link = models.CharField(blank=True, max_length=2000)
    """Where more about it is: http or https."""
    tags = ArrayField(models.TextField(), blank=True, default=list)
    meta = JSONTextField(default=dict, blank=True)
    """Labels given by people; those of a version came with it."""
    latest_number = models.PositiveIntegerField(default=0, editable=False)
    """The number of the newest version, and the lock behind the next one."""
    current_number = models.PositiveIntegerField(default=0, editable=False)
    """The number of the version outputs are judged by; 0: nothing is published yet."""
    change_count = models.PositiveIntegerField(default=0, editable=False)
    is_checked_on_arrival = models.BooleanField(default=False, editable=False)
    """Whether the server judges outputs that no guard has looked at."""
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


class State(models.TextChoices):
    """What a version is to its users. A draft is no version yet (`ToolDraft`)."""

    PUBLISHED = "published", "Published"
    DEPRECATED = "deprecated", "Deprecated"
    RETIRED = "retired", "Retired"


class ContractModel(models.Model):
    """The members a contract is made of, besides the tool's name."""

    description = models.TextField()
    input_schema = JSONTextField()
    output_schema = JSONTextField(null=True, blank=True)
    trusted = models.BooleanField(default=False)
    ephemeral = models.BooleanField(default=False)
    on_collision = models.CharField(max_length=16, choices=OnCollision, default=OnCollision.THROW)
    meta = JSONTextField(default=dict, blank=True)

    class Meta:
        abstract = True


class ToolVersion(ContractModel):
    """One immutable published contract of a tool."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="+", editable=False)
    tool = models.ForeignKey(Tool, models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField(editable=False)
    digest = models.CharField(max_length=71, editable=False)
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


class ToolDraft(ContractModel):
    """A tool's next version, which people still work on; one a tool at most."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="+", editable=False)
    tool = models.ForeignKey(Tool, models.CASCADE, related_name="drafts")
    base_number = models.PositiveIntegerField(editable=False)
    """The number of the version it began as; 0: of none."""
    revision = models.PositiveIntegerField(default=1, editable=False)
    """Counts the savings: whoever saves says which one was read."""
    created_at = models.DateTimeField(auto_now_add=True)
    saved_at = models.DateTimeField()
    saved_by = models.CharField(max_length=150)

    objects = TenantManager["ToolDraft"]()

    class Meta:
        db_table = "tool_draft"
        base_manager_name = "objects"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "tool"], name="tool_draft_tenant_tool_uniq")
        ]

    def __str__(self) -> str:
        return f"draft, revision {self.revision}"


class ImportState(models.TextChoices):
    """How an import stands: it is looked at first, and then, confirmed, carried out."""

    LOOKING = "looking", "Being looked at"
    LOOKED_AT = "looked_at", "Waits for your word"
    IMPORTING = "importing", "Being imported"
    DONE = "done", "Done"
    CANCELLED = "cancelled", "Cancelled"


class ToolImport(models.Model):
    """A file of tools: how far it was looked at or taken over (`tools_registry.exchange.job`)."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="+", editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.CharField(max_length=150)
    forms = ArrayField(models.TextField())
    """What its tools are written as, in words."""
    note = models.TextField()
    """What of it is missing as a whole."""
    is_large = models.BooleanField()
    """Whether it is the worker's; otherwise it is done while somebody waits."""
    as_drafts = models.BooleanField()
    """How it is taken over; until that is decided, what is offered first."""
    state = models.CharField(max_length=20, choices=ImportState)
    tool_count = models.PositiveIntegerField()
    done_count = models.PositiveIntegerField(default=0)
    """Of its tools, in their order, those that were looked at, or carried out."""
    user_id = models.BigIntegerField(null=True)
    """Who carries it out, in whose name all changes are made."""
    user_name = models.CharField(max_length=150)
    key_id = models.CharField(max_length=16)
    reason = models.TextField()
    finished_at = models.DateTimeField(null=True)
    """When it was looked at, or done, or cancelled."""

    objects = TenantManager["ToolImport"]()

    class Meta:
        db_table = "tool_import"
        base_manager_name = "objects"

    def __str__(self) -> str:
        return f"import of {self.created_by}"

    @property
    def is_confirmed(self) -> bool:
        """Whether somebody has said that it be carried out."""
        return bool(self.user_name or self.key_id)


class ImportedTool(models.Model):
    """A tool of an import: as it stands in the file, and what would become or became of it."""

    pk = models.CompositePrimaryKey("tenant_id", "import_id", "ordinal")
    tenant_id = models.UUIDField()
    import_id = models.UUIDField()
    ordinal = models.IntegerField()
    """Its turn: the order of names."""
    position = models.IntegerField()
    """In the file."""
    path = models.TextField()
    twin = models.TextField()
    """The place of an earlier one of its name."""
    is_own = models.BooleanField()
    """Whether it is one of the registry's own document."""
    content = models.TextField()
    """JSON, as it was sent."""
    drafts = JSONTextField(null=True)
    """What would be done as drafts (`tools_registry.exchange.summary`); None: not looked at yet."""
    published = JSONTextField(null=True)
    """What would be done published."""
    outcome = JSONTextField(null=True)
    """What was done; None: nothing yet."""

    objects = TenantManager["ImportedTool"]()

    class Meta:
        managed = False
        db_table = "tool_import_tool"

    def __str__(self) -> str:
        return self.path


class ChangeKind(models.TextChoices):
    """What happened to a tool."""

    CREATED = "created", "Created"
    DESCRIBED = "described", "Described anew"
    DRAFT_MADE = "draft_made", "Draft begun"
    DRAFT_SAVED = "draft_saved", "Draft saved"
    DRAFT_DISCARDED = "draft_discarded", "Draft discarded"
    PUBLISHED = "published", "Published"
    MADE_CURRENT = "made_current", "Made current"
    DEPRECATED = "deprecated", "Deprecated"
    RETIRED = "retired", "Retired"
    RESTORED = "restored", "Restored"
    CHECKS_ON = "checks_on", "Checked on arrival from now on"
    CHECKS_OFF = "checks_off", "No longer checked on arrival"
    KEPT = "kept", "Kept out"
    REFUSED = "refused", "Refused"


class ToolChange(models.Model):
    """One change of a tool: who, when, why. Never altered."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="+", editable=False)
    tool = models.ForeignKey(Tool, models.CASCADE, related_name="changes")
    ordinal = models.PositiveIntegerField()
    at = models.DateTimeField()
    kind = models.CharField(max_length=20, choices=ChangeKind)
    number = models.PositiveIntegerField(null=True)
    """Of the version it is about."""
    digest = models.CharField(max_length=71)
    user_name = models.CharField(max_length=150)
    key_id = models.CharField(max_length=16)
    """Of an executor's key; with no user either, the server did it by itself."""
    reason = models.TextField()
    details = JSONTextField(default=dict)
    contract = JSONTextField(null=True)
    """What an executor brought in vain."""
    attempted_on = models.DateField(null=True)
    """The UTC day of that."""

    objects = TenantManager["ToolChange"]()

    class Meta:
        db_table = "tool_change"
        base_manager_name = "objects"
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["tenant", "tool", "ordinal"], name="tool_change_tenant_tool_ordinal_uniq"
            )
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} {self.number or ''}".strip()

    @property
    def is_unusable(self) -> bool:
        """Whether an executor brought what could not be a contract, and the reason says why."""
        return self.attempted_on is not None and bool(self.reason)

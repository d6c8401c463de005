"""Models of the registry: tools, versions, drafts, changes and imports.

The tables are created in SQL (`migrations/schema/*.sql`). Their key is (tenant_id, id). Versions
and changes are immutable: the application has no grant to update them. `tools_registry.versions`
publishes versions, `tools_registry.states` changes their state, `tools_registry.drafts` prepares
the next one. `in_ledger` names the columns that the ledger proves (`tenants.row_digests`).
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
    """A JSON document stored as text.

    jsonb would reorder the members, but a schema's author chose their order and the guard lists
    violations in it. jsonb also refuses U+0000, which is valid in a `const`.
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
    """A registered name; its contracts are its versions."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="+", editable=False)
    name = models.CharField(max_length=256)
    notes = models.TextField(
        blank=True, max_length=10_000, help_text="Notes for people who use or maintain the tool."
    )
    owner = models.CharField(blank=True, max_length=200)
    """The person or team to ask."""
    link = models.CharField(blank=True, max_length=2000)
    """URL of more information, http or https."""
    tags = ArrayField(models.TextField(), blank=True, default=list)
    meta = JSONTextField(default=dict, blank=True)
    """Labels set by people; a version's labels are part of its registration."""
    latest_number = models.PositiveIntegerField(default=0, editable=False)
    """Number of the newest version; locking the row gives out the next number."""
    current_number = models.PositiveIntegerField(default=0, editable=False)
    """Number of the version that outputs are validated against; 0: none is published yet."""
    change_count = models.PositiveIntegerField(default=0, editable=False)
    is_checked_on_arrival = models.BooleanField(default=False, editable=False)
    """Whether the server validates outputs that no guard has validated."""
    created_at = models.DateTimeField(auto_now_add=True)

    objects = TenantManager["Tool"]()

    in_ledger: ClassVar = (
        *("name", "notes", "owner", "link", "tags", "meta"),
        *("latest_number", "current_number", "is_checked_on_arrival", "created_at"),
    )
    ledger_exempt: ClassVar = models.Q(latest_number=0)
    """Names of rejected registrations: no version exists (`tools_registry.attempts`)."""

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
    """What happens if the name is already registered. Source: the ADK's `Tool`."""

    THROW = "throw", "throw: rejected"
    REPLACE = "replace", "replace: becomes the current version"
    KEEP = "keep", "keep: the registered version stays"


class State(models.TextChoices):
    """The state of a version. A draft is not a version yet (`ToolDraft`)."""

    PUBLISHED = "published", "Published"
    DEPRECATED = "deprecated", "Deprecated"
    RETIRED = "retired", "Retired"


class ContractModel(models.Model):
    """The members of a contract except the tool's name."""

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
    """A copy of the user's name, which outlives the account; '' if a key published it."""
    created_by_key = models.CharField(max_length=16, editable=False)
    """The key's id if an executor published it, else ''."""

    objects = TenantManager["ToolVersion"]()

    in_ledger: ClassVar = (
        *("tool_id", "number", "digest", "created_at", "created_by", "created_by_key"),
        *("description", "input_schema", "output_schema"),
        *("trusted", "ephemeral", "on_collision", "meta"),
    )

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
    """A tool's next version, still being edited; at most one per tool."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="+", editable=False)
    tool = models.ForeignKey(Tool, models.CASCADE, related_name="drafts")
    base_number = models.PositiveIntegerField(editable=False)
    """Number of the version that it is based on; 0: none."""
    revision = models.PositiveIntegerField(default=1, editable=False)
    """Number of saves; a save names the revision that it is based on."""
    created_at = models.DateTimeField(auto_now_add=True)
    saved_at = models.DateTimeField()
    saved_by = models.CharField(max_length=150)

    objects = TenantManager["ToolDraft"]()

    in_ledger: ClassVar = (
        *("tool_id", "base_number", "revision", "created_at", "saved_at", "saved_by"),
        *("description", "input_schema", "output_schema"),
        *("trusted", "ephemeral", "on_collision", "meta"),
    )

    class Meta:
        db_table = "tool_draft"
        base_manager_name = "objects"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "tool"], name="tool_draft_tenant_tool_uniq")
        ]

    def __str__(self) -> str:
        return f"draft, revision {self.revision}"


class ImportState(models.TextChoices):
    """The state of an import: first previewed, then, after confirmation, imported."""

    PREVIEWING = "previewing", "Being previewed"
    PREVIEWED = "previewed", "Waiting for confirmation"
    IMPORTING = "importing", "Being imported"
    DONE = "done", "Done"
    CANCELLED = "cancelled", "Cancelled"


class ToolImport(models.Model):
    """A file of tools and the progress of its preview or import (`tools_registry.exchange.job`)."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="+", editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.CharField(max_length=150)
    forms = ArrayField(models.TextField())
    """The labels of its tools' forms."""
    note = models.TextField()
    """What the whole file lacks, as text; '' if nothing."""
    is_large = models.BooleanField()
    """Whether the worker processes it; if not, it is processed within the request."""
    as_drafts = models.BooleanField()
    """Whether to import as drafts; before the confirmation, the preselected choice."""
    state = models.CharField(max_length=20, choices=ImportState)
    tool_count = models.PositiveIntegerField()
    done_count = models.PositiveIntegerField(default=0)
    """Number of tools previewed or imported so far, in the order of `ordinal`."""
    user_id = models.BigIntegerField(null=True)
    """The user who confirmed it; all changes are recorded under this user."""
    user_name = models.CharField(max_length=150)
    key_id = models.CharField(max_length=16)
    reason = models.TextField()
    finished_at = models.DateTimeField(null=True)
    """When the preview or the import ended or was cancelled."""

    objects = TenantManager["ToolImport"]()

    class Meta:
        db_table = "tool_import"
        base_manager_name = "objects"

    def __str__(self) -> str:
        return f"import of {self.created_by}"

    @property
    def is_confirmed(self) -> bool:
        """Whether the import was confirmed."""
        return bool(self.user_name or self.key_id)

    @property
    def is_previewed(self) -> bool:
        """Whether the preview has ended and waits for confirmation."""
        return self.state == ImportState.PREVIEWED


class ImportedTool(models.Model):
    """A tool of an import: its content in the file, its previews and its outcome."""

    pk = models.CompositePrimaryKey("tenant_id", "import_id", "ordinal")
    tenant_id = models.UUIDField()
    import_id = models.UUIDField()
    ordinal = models.IntegerField()
    """Order of processing: by name."""
    position = models.IntegerField()
    """Position in the file."""
    path = models.TextField()
    twin = models.TextField()
    """Path of an earlier tool with the same name; '' if none."""
    is_own = models.BooleanField()
    """Whether it has the registry's own format."""
    content = models.TextField()
    """JSON, as sent."""
    drafts = JSONTextField(null=True)
    """Preview as drafts (`tools_registry.exchange.summary`); None: not previewed yet."""
    published = JSONTextField(null=True)
    """Preview as published; None: not previewed yet."""
    outcome = JSONTextField(null=True)
    """What the import did; None: nothing yet."""

    objects = TenantManager["ImportedTool"]()

    class Meta:
        managed = False
        db_table = "tool_import_tool"

    def __str__(self) -> str:
        return self.path


class ChangeKind(models.TextChoices):
    """What happened to a tool."""

    CREATED = "created", "Created"
    DESCRIBED = "described", "Details edited"
    DRAFT_MADE = "draft_made", "Draft created"
    DRAFT_SAVED = "draft_saved", "Draft saved"
    DRAFT_DISCARDED = "draft_discarded", "Draft discarded"
    PUBLISHED = "published", "Published"
    MADE_CURRENT = "made_current", "Made current"
    DEPRECATED = "deprecated", "Deprecated"
    RETIRED = "retired", "Retired"
    RESTORED = "restored", "Restored"
    CHECKS_ON = "checks_on", "Validation on arrival turned on"
    CHECKS_OFF = "checks_off", "Validation on arrival turned off"
    KEPT = "kept", "Not replaced"
    REFUSED = "refused", "Rejected"


class ToolChange(models.Model):
    """One change of a tool: who, when and why. Immutable."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="+", editable=False)
    tool = models.ForeignKey(Tool, models.CASCADE, related_name="changes")
    ordinal = models.PositiveIntegerField()
    at = models.DateTimeField()
    kind = models.CharField(max_length=20, choices=ChangeKind)
    number = models.PositiveIntegerField(null=True)
    """Number of the version concerned, if any."""
    digest = models.CharField(max_length=71)
    user_name = models.CharField(max_length=150)
    key_id = models.CharField(max_length=16)
    """Id of an executor's key; '' with an empty `user_name`: the server."""
    reason = models.TextField()
    details = JSONTextField(default=dict)
    contract = JSONTextField(null=True)
    """The contract that an executor sent, if it did not become a version."""
    attempted_on = models.DateField(null=True)
    """The UTC day of that attempt."""

    objects = TenantManager["ToolChange"]()

    in_ledger: ClassVar = (
        *("tool_id", "ordinal", "at", "kind", "number", "digest"),
        *("user_name", "key_id", "reason", "details"),
    )
    ledger_exempt: ClassVar = ~models.Q(attempted_on=None)
    """Attempts changed nothing and are not in the audit log."""

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
        """Whether an executor sent an unusable contract; `reason` says why."""
        return self.attempted_on is not None and bool(self.reason)

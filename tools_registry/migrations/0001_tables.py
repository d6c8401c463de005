"""The registry: the tables are `schema/*.sql`, in the order below."""

from typing import Any

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

import tenants.models
import tools_registry.models
from config.postgresql.migrations import SchemaFiles


def _key(*names: str) -> Any:
    return models.CompositePrimaryKey(
        *names, blank=True, editable=False, primary_key=True, serialize=False
    )


_MODELS = [
    migrations.CreateModel(
        name="ImportedTool",
        fields=[
            ("pk", _key("tenant_id", "import_id", "ordinal")),
            ("tenant_id", models.UUIDField()),
            ("import_id", models.UUIDField()),
            ("ordinal", models.IntegerField()),
            ("position", models.IntegerField()),
            ("path", models.TextField()),
            ("twin", models.TextField()),
            ("is_own", models.BooleanField()),
            ("content", models.TextField()),
            ("drafts", tools_registry.models.JSONTextField(null=True)),
            ("published", tools_registry.models.JSONTextField(null=True)),
            ("outcome", tools_registry.models.JSONTextField(null=True)),
        ],
        options={"db_table": "tool_import_tool", "managed": False},
    ),
    migrations.CreateModel(
        name="Tool",
        fields=[
            (
                "id",
                models.UUIDField(
                    default=tenants.models.new_id, editable=False, primary_key=True, serialize=False
                ),
            ),
            ("name", models.CharField(max_length=256)),
            (
                "notes",
                models.TextField(
                    blank=True,
                    help_text="Notes for people who use or maintain the tool.",
                    max_length=10000,
                ),
            ),
            ("owner", models.CharField(blank=True, max_length=200)),
            ("link", models.CharField(blank=True, max_length=2000)),
            (
                "tags",
                django.contrib.postgres.fields.ArrayField(
                    base_field=models.TextField(), blank=True, default=list
                ),
            ),
            ("meta", tools_registry.models.JSONTextField(blank=True, default=dict)),
            ("latest_number", models.PositiveIntegerField(default=0, editable=False)),
            ("current_number", models.PositiveIntegerField(default=0, editable=False)),
            ("change_count", models.PositiveIntegerField(default=0, editable=False)),
            ("is_checked_on_arrival", models.BooleanField(default=False, editable=False)),
            ("created_at", models.DateTimeField(auto_now_add=True)),
            (
                "tenant",
                models.ForeignKey(
                    editable=False,
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="+",
                    to="tenants.tenant",
                ),
            ),
        ],
        options={
            "db_table": "tool",
            "base_manager_name": "objects",
            "constraints": [
                models.UniqueConstraint(fields=("tenant", "name"), name="tool_tenant_name_uniq")
            ],
        },
    ),
    migrations.CreateModel(
        name="ToolChange",
        fields=[
            (
                "id",
                models.UUIDField(
                    default=tenants.models.new_id, editable=False, primary_key=True, serialize=False
                ),
            ),
            ("ordinal", models.PositiveIntegerField()),
            ("at", models.DateTimeField()),
            (
                "kind",
                models.CharField(
                    choices=[
                        ("created", "Created"),
                        ("described", "Details edited"),
                        ("draft_made", "Draft created"),
                        ("draft_saved", "Draft saved"),
                        ("draft_discarded", "Draft discarded"),
                        ("published", "Published"),
                        ("made_current", "Made current"),
                        ("deprecated", "Deprecated"),
                        ("retired", "Retired"),
                        ("restored", "Restored"),
                        ("checks_on", "Validation on arrival turned on"),
                        ("checks_off", "Validation on arrival turned off"),
                        ("kept", "Not replaced"),
                        ("refused", "Rejected"),
                    ],
                    max_length=20,
                ),
            ),
            ("number", models.PositiveIntegerField(null=True)),
            ("digest", models.CharField(max_length=71)),
            ("user_name", models.CharField(max_length=150)),
            ("key_id", models.CharField(max_length=16)),
            ("reason", models.TextField()),
            ("details", tools_registry.models.JSONTextField(default=dict)),
            ("contract", tools_registry.models.JSONTextField(null=True)),
            ("attempted_on", models.DateField(null=True)),
            (
                "tenant",
                models.ForeignKey(
                    editable=False,
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="+",
                    to="tenants.tenant",
                ),
            ),
            (
                "tool",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="changes",
                    to="tools_registry.tool",
                ),
            ),
        ],
        options={
            "db_table": "tool_change",
            "base_manager_name": "objects",
            "constraints": [
                models.UniqueConstraint(
                    fields=("tenant", "tool", "ordinal"),
                    name="tool_change_tenant_tool_ordinal_uniq",
                )
            ],
        },
    ),
    migrations.CreateModel(
        name="ToolDraft",
        fields=[
            ("description", models.TextField()),
            ("input_schema", tools_registry.models.JSONTextField()),
            ("output_schema", tools_registry.models.JSONTextField(blank=True, null=True)),
            ("trusted", models.BooleanField(default=False)),
            ("ephemeral", models.BooleanField(default=False)),
            (
                "on_collision",
                models.CharField(
                    choices=[
                        ("throw", "throw: rejected"),
                        ("replace", "replace: becomes the current version"),
                        ("keep", "keep: the registered version stays"),
                    ],
                    default="throw",
                    max_length=16,
                ),
            ),
            ("meta", tools_registry.models.JSONTextField(blank=True, default=dict)),
            (
                "id",
                models.UUIDField(
                    default=tenants.models.new_id, editable=False, primary_key=True, serialize=False
                ),
            ),
            ("base_number", models.PositiveIntegerField(editable=False)),
            ("revision", models.PositiveIntegerField(default=1, editable=False)),
            ("created_at", models.DateTimeField(auto_now_add=True)),
            ("saved_at", models.DateTimeField()),
            ("saved_by", models.CharField(max_length=150)),
            (
                "tenant",
                models.ForeignKey(
                    editable=False,
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="+",
                    to="tenants.tenant",
                ),
            ),
            (
                "tool",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="drafts",
                    to="tools_registry.tool",
                ),
            ),
        ],
        options={
            "db_table": "tool_draft",
            "base_manager_name": "objects",
            "constraints": [
                models.UniqueConstraint(
                    fields=("tenant", "tool"), name="tool_draft_tenant_tool_uniq"
                )
            ],
        },
    ),
    migrations.CreateModel(
        name="ToolImport",
        fields=[
            (
                "id",
                models.UUIDField(
                    default=tenants.models.new_id, editable=False, primary_key=True, serialize=False
                ),
            ),
            ("created_at", models.DateTimeField(auto_now_add=True)),
            ("created_by", models.CharField(max_length=150)),
            ("forms", django.contrib.postgres.fields.ArrayField(base_field=models.TextField())),
            ("note", models.TextField()),
            ("is_large", models.BooleanField()),
            ("as_drafts", models.BooleanField()),
            (
                "state",
                models.CharField(
                    choices=[
                        ("previewing", "Being previewed"),
                        ("previewed", "Waiting for confirmation"),
                        ("importing", "Being imported"),
                        ("done", "Done"),
                        ("cancelled", "Cancelled"),
                    ],
                    max_length=20,
                ),
            ),
            ("tool_count", models.PositiveIntegerField()),
            ("done_count", models.PositiveIntegerField(default=0)),
            ("user_id", models.BigIntegerField(null=True)),
            ("user_name", models.CharField(max_length=150)),
            ("key_id", models.CharField(max_length=16)),
            ("reason", models.TextField()),
            ("finished_at", models.DateTimeField(null=True)),
            (
                "tenant",
                models.ForeignKey(
                    editable=False,
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="+",
                    to="tenants.tenant",
                ),
            ),
        ],
        options={"db_table": "tool_import", "base_manager_name": "objects"},
    ),
    migrations.CreateModel(
        name="ToolVersion",
        fields=[
            ("description", models.TextField()),
            ("input_schema", tools_registry.models.JSONTextField()),
            ("output_schema", tools_registry.models.JSONTextField(blank=True, null=True)),
            ("trusted", models.BooleanField(default=False)),
            ("ephemeral", models.BooleanField(default=False)),
            (
                "on_collision",
                models.CharField(
                    choices=[
                        ("throw", "throw: rejected"),
                        ("replace", "replace: becomes the current version"),
                        ("keep", "keep: the registered version stays"),
                    ],
                    default="throw",
                    max_length=16,
                ),
            ),
            ("meta", tools_registry.models.JSONTextField(blank=True, default=dict)),
            (
                "id",
                models.UUIDField(
                    default=tenants.models.new_id, editable=False, primary_key=True, serialize=False
                ),
            ),
            ("number", models.PositiveIntegerField(editable=False)),
            ("digest", models.CharField(editable=False, max_length=71)),
            ("created_at", models.DateTimeField(auto_now_add=True)),
            ("created_by", models.CharField(editable=False, max_length=150)),
            ("created_by_key", models.CharField(editable=False, max_length=16)),
            (
                "tenant",
                models.ForeignKey(
                    editable=False,
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="+",
                    to="tenants.tenant",
                ),
            ),
            (
                "tool",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="versions",
                    to="tools_registry.tool",
                ),
            ),
        ],
        options={
            "db_table": "tool_version",
            "ordering": ["-number"],
            "base_manager_name": "objects",
            "constraints": [
                models.UniqueConstraint(
                    fields=("tenant", "digest"), name="tool_version_tenant_digest_uniq"
                ),
                models.UniqueConstraint(
                    fields=("tenant", "tool", "number"), name="tool_version_tenant_tool_number_uniq"
                ),
            ],
        },
    ),
]

_REPLACED = [
    "0001_tool",
    "0002_tool_change",
    "0003_observed_tool",
    "0004_tool_import",
    "0005_check_on_arrival",
    "0006_import_job",
    "0001_schema",
    "0002_import_states",
]
"""They are no longer here. An installation that has all of them has these tables."""


class Migration(migrations.Migration):
    initial = True
    replaces = [("tools_registry", name) for name in _REPLACED]
    dependencies = [("tenants", "0001_tables")]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[SchemaFiles("tools", "imports")],
            state_operations=_MODELS,
        )
    ]

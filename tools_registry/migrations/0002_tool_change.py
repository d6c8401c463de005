import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

import tenants.models
import tools_registry.models
from config.postgresql.migrations import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0005_payload_scope"),
        ("tools_registry", "0001_tool"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[RunSQLFile("0002_tool_change")],
            state_operations=[
                migrations.AddField(
                    model_name="tool",
                    name="change_count",
                    field=models.PositiveIntegerField(default=0, editable=False),
                ),
                migrations.AddField(
                    model_name="tool",
                    name="current_number",
                    field=models.PositiveIntegerField(default=0, editable=False),
                ),
                migrations.AddField(
                    model_name="tool",
                    name="link",
                    field=models.CharField(blank=True, max_length=2000),
                ),
                migrations.AddField(
                    model_name="tool",
                    name="meta",
                    field=tools_registry.models.JSONTextField(blank=True, default=dict),
                ),
                migrations.AddField(
                    model_name="tool",
                    name="owner",
                    field=models.CharField(blank=True, max_length=200),
                ),
                migrations.AddField(
                    model_name="tool",
                    name="tags",
                    field=django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(), blank=True, default=list
                    ),
                ),
                migrations.CreateModel(
                    name="ToolChange",
                    fields=[
                        (
                            "id",
                            models.UUIDField(
                                default=tenants.models.new_id,
                                editable=False,
                                primary_key=True,
                                serialize=False,
                            ),
                        ),
                        ("ordinal", models.PositiveIntegerField()),
                        ("at", models.DateTimeField()),
                        (
                            "kind",
                            models.CharField(
                                choices=[
                                    ("created", "Created"),
                                    ("described", "Described anew"),
                                    ("draft_made", "Draft begun"),
                                    ("draft_saved", "Draft saved"),
                                    ("draft_discarded", "Draft discarded"),
                                    ("published", "Published"),
                                    ("made_current", "Made current"),
                                    ("deprecated", "Deprecated"),
                                    ("retired", "Retired"),
                                    ("restored", "Restored"),
                                    ("kept", "Kept out"),
                                    ("refused", "Refused"),
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
                        (
                            "output_schema",
                            tools_registry.models.JSONTextField(blank=True, null=True),
                        ),
                        ("trusted", models.BooleanField(default=False)),
                        ("ephemeral", models.BooleanField(default=False)),
                        (
                            "on_collision",
                            models.CharField(
                                choices=[
                                    ("throw", "throw: refused"),
                                    ("replace", "replace: becomes the current version"),
                                    ("keep", "keep: the registered one stays"),
                                ],
                                default="throw",
                                max_length=16,
                            ),
                        ),
                        ("meta", tools_registry.models.JSONTextField(blank=True, default=dict)),
                        (
                            "id",
                            models.UUIDField(
                                default=tenants.models.new_id,
                                editable=False,
                                primary_key=True,
                                serialize=False,
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
            ],
        ),
    ]

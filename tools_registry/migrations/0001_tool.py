import django.db.models.deletion
from django.db import migrations, models

import tenants.models
import tools_registry.models
from config.postgresql.migrations import RunSQLFile


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("tenants", "0002_sign_in_failure"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[RunSQLFile("0001_tool")],
            state_operations=[
                migrations.CreateModel(
                    name="Tool",
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
                        ("name", models.CharField(max_length=256)),
                        (
                            "notes",
                            models.TextField(
                                blank=True,
                                help_text="For people: who owns it, what to know about it.",
                                max_length=10000,
                            ),
                        ),
                        ("latest_number", models.PositiveIntegerField(default=0, editable=False)),
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
                    },
                ),
                migrations.CreateModel(
                    name="ToolVersion",
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
                        ("number", models.PositiveIntegerField(editable=False)),
                        ("digest", models.CharField(editable=False, max_length=71)),
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
                    },
                ),
                migrations.AddConstraint(
                    model_name="tool",
                    constraint=models.UniqueConstraint(
                        fields=("tenant", "name"), name="tool_tenant_name_uniq"
                    ),
                ),
                migrations.AddConstraint(
                    model_name="toolversion",
                    constraint=models.UniqueConstraint(
                        fields=("tenant", "tool", "number"),
                        name="tool_version_tenant_tool_number_uniq",
                    ),
                ),
                migrations.AddConstraint(
                    model_name="toolversion",
                    constraint=models.UniqueConstraint(
                        fields=("tenant", "digest"), name="tool_version_tenant_digest_uniq"
                    ),
                ),
            ],
        ),
    ]

import django.db.models.deletion
from django.db import migrations, models

import tenants.models
from config.postgresql.migrations import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0005_payload_scope"),
        ("tools_registry", "0003_observed_tool"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[RunSQLFile("0004_tool_import")],
            state_operations=[
                migrations.CreateModel(
                    name="ToolImport",
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
                        ("created_at", models.DateTimeField(auto_now_add=True)),
                        ("created_by", models.CharField(max_length=150)),
                        ("document", models.TextField()),
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
                        "db_table": "tool_import",
                        "base_manager_name": "objects",
                    },
                ),
            ],
        ),
    ]

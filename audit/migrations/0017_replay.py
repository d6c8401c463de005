from typing import Any

from django.db import migrations, models

from config.postgresql.migrations import RunSQLFile


def _key(*names: str) -> Any:
    return models.CompositePrimaryKey(
        *names, blank=True, editable=False, primary_key=True, serialize=False
    )


class Migration(migrations.Migration):
    dependencies = [("audit", "0016_ledger"), ("tools_registry", "0001_tool")]
    operations = [
        RunSQLFile("0017_replay"),
        # The table is unmanaged: this tells the state alone.
        migrations.CreateModel(
            name="Replay",
            fields=[
                ("pk", _key("tenant_id", "id")),
                ("tenant_id", models.UUIDField()),
                ("id", models.UUIDField()),
                ("tool_id", models.UUIDField()),
                ("tool_name", models.TextField()),
                ("created_at", models.DateTimeField()),
                ("created_by", models.TextField()),
                ("draft_revision", models.IntegerField()),
                ("base_number", models.IntegerField(null=True)),
                ("input_schema", models.TextField()),
                ("output_schema", models.TextField(null=True)),
                ("since", models.DateTimeField()),
                ("until", models.DateTimeField()),
                ("call_limit", models.IntegerField()),
                (
                    "state",
                    models.TextField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("running", "Running"),
                            ("done", "Done"),
                            ("cancelled", "Cancelled"),
                            ("failed", "Failed"),
                        ]
                    ),
                ),
                ("call_count", models.BigIntegerField(null=True)),
                ("read_count", models.BigIntegerField()),
                ("cursor_at", models.DateTimeField(null=True)),
                ("cursor_id", models.UUIDField(null=True)),
                ("newly_violating_count", models.BigIntegerField()),
                ("findings", models.TextField()),
                ("problem", models.TextField()),
                ("finished_at", models.DateTimeField(null=True)),
            ],
            options={"db_table": "tool_replay", "managed": False},
        ),
    ]

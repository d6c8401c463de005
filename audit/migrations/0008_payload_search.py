from typing import Any

from django.db import migrations, models

from config.postgresql.migrations import RunSQLFile


def _key(*names: str) -> Any:
    return models.CompositePrimaryKey(
        *names, blank=True, editable=False, primary_key=True, serialize=False
    )


class Migration(migrations.Migration):
    dependencies = [("audit", "0007_saved_view")]
    operations = [
        RunSQLFile("0008_payload_search"),
        # The tables are unmanaged: these tell the state alone.
        migrations.CreateModel(
            name="PayloadSearch",
            fields=[
                ("pk", _key("tenant_id", "id")),
                ("tenant_id", models.UUIDField()),
                ("id", models.UUIDField()),
                ("user_id", models.BigIntegerField()),
                ("created_at", models.DateTimeField()),
                ("needle", models.TextField()),
                ("query", models.TextField()),
                ("since", models.DateTimeField()),
                ("until", models.DateTimeField()),
                (
                    "state",
                    models.TextField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("running", "Running"),
                            ("done", "Done"),
                            ("full", "Full"),
                            ("cancelled", "Cancelled"),
                            ("failed", "Failed"),
                        ]
                    ),
                ),
                ("cursor_at", models.DateTimeField(null=True)),
                ("cursor_id", models.UUIDField(null=True)),
                ("searched_count", models.BigIntegerField()),
                ("erased_count", models.BigIntegerField()),
                ("found_count", models.BigIntegerField()),
                ("finished_at", models.DateTimeField(null=True)),
            ],
            options={"db_table": "payload_search", "managed": False},
        ),
        migrations.CreateModel(
            name="PayloadHit",
            fields=[
                ("pk", _key("tenant_id", "search_id", "started_at", "invocation_id", "kind")),
                ("tenant_id", models.UUIDField()),
                ("search_id", models.UUIDField()),
                ("started_at", models.DateTimeField()),
                ("invocation_id", models.UUIDField()),
                ("kind", models.TextField()),
            ],
            options={"db_table": "payload_search_hit", "managed": False},
        ),
    ]

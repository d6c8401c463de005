from typing import Any

from django.db import migrations, models

from config.postgresql.migrations import RunSQLFile


def _key(*names: str) -> Any:
    return models.CompositePrimaryKey(
        *names, blank=True, editable=False, primary_key=True, serialize=False
    )


class Migration(migrations.Migration):
    dependencies = [("audit", "0020_failed_calls")]
    operations = [
        RunSQLFile("0021_erasure"),
        # The tables are unmanaged: this tells the state alone.
        migrations.CreateModel(
            name="Erasure",
            fields=[
                ("pk", _key("tenant_id", "id")),
                ("tenant_id", models.UUIDField()),
                ("id", models.UUIDField()),
                ("query", models.TextField()),
                ("created_at", models.DateTimeField()),
                ("created_by", models.TextField()),
                (
                    "state",
                    models.TextField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("counting", "Counting"),
                            ("counted", "Counted"),
                            ("confirmed", "Confirmed"),
                            ("erasing", "Erasing"),
                            ("done", "Done"),
                            ("cancelled", "Stopped"),
                            ("failed", "Failed"),
                        ]
                    ),
                ),
                ("step", models.TextField()),
                ("cursor_at", models.DateTimeField(null=True)),
                ("cursor_id", models.UUIDField(null=True)),
                ("next_index", models.BigIntegerField(default=0)),
                ("end_index", models.BigIntegerField(default=0)),
                ("first_started_at", models.DateTimeField(null=True)),
                ("call_count", models.BigIntegerField(default=0)),
                ("held_count", models.BigIntegerField(default=0)),
                ("event_count", models.BigIntegerField(default=0)),
                ("byte_count", models.BigIntegerField(default=0)),
                ("line_count", models.BigIntegerField(default=0)),
                ("reason", models.TextField(null=True)),
                ("confirmed_at", models.DateTimeField(null=True)),
                ("confirmed_by", models.TextField(null=True)),
                ("erased_calls", models.BigIntegerField(default=0)),
                ("erased_events", models.BigIntegerField(default=0)),
                ("erased_bytes", models.BigIntegerField(default=0)),
                ("erased_lines", models.BigIntegerField(default=0)),
                ("finished_at", models.DateTimeField(null=True)),
                ("problem", models.TextField()),
            ],
            options={"db_table": "erasure", "managed": False},
        ),
        migrations.CreateModel(
            name="ErasureCall",
            fields=[
                ("pk", _key("tenant_id", "erasure_id", "started_at", "invocation_id")),
                ("tenant_id", models.UUIDField()),
                ("erasure_id", models.UUIDField()),
                ("started_at", models.DateTimeField()),
                ("invocation_id", models.UUIDField()),
            ],
            options={"db_table": "erasure_call", "managed": False},
        ),
    ]

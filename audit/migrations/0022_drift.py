from django.db import migrations, models

from config.postgresql.migrations import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("audit", "0021_erasure"), ("tools_registry", "0001_tool")]
    operations = [
        RunSQLFile("0022_drift"),
        # The table is unmanaged: this tells the state alone.
        migrations.CreateModel(
            name="DriftLook",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "tenant_id",
                        "id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("tenant_id", models.UUIDField()),
                ("id", models.UUIDField()),
                ("tool_id", models.UUIDField()),
                ("tool_name", models.TextField()),
                ("created_at", models.DateTimeField()),
                ("created_by", models.TextField()),
                ("base_number", models.IntegerField(null=True)),
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
                ("call_count", models.BigIntegerField()),
                ("read_count", models.BigIntegerField()),
                ("cursor_at", models.DateTimeField(null=True)),
                ("cursor_id", models.UUIDField(null=True)),
                ("found", models.TextField()),
                ("problem", models.TextField()),
                ("finished_at", models.DateTimeField(null=True)),
            ],
            options={"db_table": "tool_drift", "managed": False},
        ),
    ]

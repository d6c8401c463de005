from django.db import migrations, models

from config.postgresql.migrations import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("audit", "0011_histogram_number")]
    operations = [
        RunSQLFile("0012_polling_tool"),
        # The table is unmanaged: this tells the state alone.
        migrations.CreateModel(
            name="PollingTool",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "tenant_id",
                        "tool_name",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("tenant_id", models.UUIDField()),
                ("tool_name", models.TextField()),
                ("created_at", models.DateTimeField()),
            ],
            options={"db_table": "polling_tool", "managed": False},
        ),
    ]

from django.db import migrations, models

from config.postgresql.migrations import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("audit", "0006_orphan_index"), ("tenants", "0003_tenants_stay")]
    operations = [
        RunSQLFile("0007_saved_view"),
        # The table is unmanaged: this tells the state alone.
        migrations.CreateModel(
            name="SavedView",
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
                ("user_id", models.BigIntegerField()),
                ("name", models.TextField()),
                ("query", models.TextField()),
                ("created_at", models.DateTimeField()),
            ],
            options={"db_table": "saved_view", "managed": False},
        ),
    ]

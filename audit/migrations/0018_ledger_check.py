import django.contrib.postgres.fields
from django.db import migrations, models

from config.postgresql.migrations import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("audit", "0017_replay")]
    operations = [
        RunSQLFile("0018_ledger_check"),
        # The table is unmanaged: this tells the state alone.
        migrations.CreateModel(
            name="LedgerCheck",
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
                ("asked_by", models.TextField()),
                ("created_at", models.DateTimeField()),
                (
                    "state",
                    models.TextField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("running", "Running"),
                            ("passed", "Passed"),
                            ("failed", "Failed"),
                            ("cancelled", "Cancelled"),
                        ]
                    ),
                ),
                ("size", models.BigIntegerField()),
                ("next_index", models.BigIntegerField()),
                ("erased_count", models.BigIntegerField()),
                ("checkpoint_count", models.BigIntegerField()),
                ("finding_count", models.BigIntegerField()),
                (
                    "findings",
                    django.contrib.postgres.fields.ArrayField(base_field=models.TextField()),
                ),
                ("finished_at", models.DateTimeField(null=True)),
            ],
            options={"db_table": "ledger_check", "managed": False},
        ),
    ]

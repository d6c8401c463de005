"""Whether a tenant's log has its baseline. Older code appends none."""

import django.contrib.postgres.fields
from django.db import migrations, models

from config.postgresql.migrations import OlderCodeMayGoOn, RunSQLFile

_REPORTS = [
    migrations.CreateModel(
        name="StoredReport",
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
            ("created_at", models.DateTimeField()),
            ("made_by", models.TextField()),
            ("made_as", models.TextField()),
            ("kind", models.TextField()),
            ("start_at", models.DateTimeField()),
            ("end_at", models.DateTimeField()),
            ("time_zone", models.TextField()),
            ("period", models.TextField(null=True)),
            ("ledger_size", models.BigIntegerField()),
            ("query", models.TextField()),
            ("again_of", models.UUIDField(null=True)),
            ("figures", models.JSONField()),
        ],
        options={"db_table": "report", "managed": False},
    ),
    migrations.CreateModel(
        name="StoredReportSchedule",
        fields=[
            ("tenant_id", models.UUIDField(primary_key=True, serialize=False)),
            (
                "kinds",
                django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), size=None),
            ),
            ("time_zone", models.TextField()),
            ("keep_days", models.IntegerField()),
        ],
        options={"db_table": "report_schedule", "managed": False},
    ),
]


class Migration(migrations.Migration):
    dependencies = [("audit", "0007_decision_indexes")]
    operations = [
        RunSQLFile("schema/baseline"),
        migrations.SeparateDatabaseAndState(state_operations=_REPORTS),
        OlderCodeMayGoOn("audit", "0008_baseline"),
    ]

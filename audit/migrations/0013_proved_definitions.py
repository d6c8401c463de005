"""Models of tables whose rows the ledger proves from now on. The tables do not change."""

import django.contrib.postgres.fields.ranges
from django.db import migrations, models

from config.postgresql.migrations import OlderCodeMayGoOn


class Migration(migrations.Migration):
    dependencies = [
        ("audit", "0012_skipped_span"),
    ]

    operations = [
        migrations.CreateModel(
            name="StoredDefinition",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "tenant_id",
                        "digest",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("tenant_id", models.UUIDField()),
                ("digest", models.TextField()),
                ("content", models.TextField()),
            ],
            options={
                "db_table": "definition",
                "managed": False,
            },
        ),
        migrations.CreateModel(
            name="StoredDefinitionChange",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "tenant_id",
                        "server",
                        "tool_name",
                        "seen_at",
                        "digest",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("tenant_id", models.UUIDField()),
                ("server", models.TextField()),
                ("tool_name", models.TextField()),
                ("seen_at", models.DateTimeField()),
                ("digest", models.TextField()),
                ("server_version", models.TextField(null=True)),
                ("client", models.TextField(null=True)),
                ("client_version", models.TextField(null=True)),
            ],
            options={
                "db_table": "definition_change",
                "managed": False,
            },
        ),
        migrations.CreateModel(
            name="StoredServedDefinition",
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
                ("server", models.TextField()),
                ("tool_name", models.TextField()),
                ("digest", models.TextField()),
                ("state", models.TextField()),
                ("approved_at", models.DateTimeField(null=True)),
                ("approved_by", models.TextField(null=True)),
                ("approval_reason", models.TextField(null=True)),
                ("approved_during", django.contrib.postgres.fields.ranges.DateTimeRangeField()),
                ("withdrawn_at", models.DateTimeField(null=True)),
                ("withdrawn_by", models.TextField(null=True)),
                ("withdrawal_reason", models.TextField(null=True)),
            ],
            options={
                "db_table": "served_definition",
                "managed": False,
            },
        ),
        OlderCodeMayGoOn("audit", "0013_proved_definitions"),
    ]

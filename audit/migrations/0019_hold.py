from typing import Any

import django.contrib.postgres.fields
from django.db import migrations, models

from config.postgresql.migrations import RunSQLFile


def _key(*names: str) -> Any:
    return models.CompositePrimaryKey(
        *names, blank=True, editable=False, primary_key=True, serialize=False
    )


class Migration(migrations.Migration):
    dependencies = [("audit", "0018_ledger_check"), ("tenants", "0004_settings")]
    operations = [
        RunSQLFile("0019_hold"),
        # The tables are unmanaged: this tells the state alone.
        migrations.CreateModel(
            name="LegalHold",
            fields=[
                ("pk", _key("tenant_id", "id")),
                ("tenant_id", models.UUIDField()),
                ("id", models.UUIDField()),
                ("name", models.TextField()),
                ("reason", models.TextField()),
                ("trace_id", models.TextField(null=True)),
                ("case_id", models.TextField(null=True)),
                ("tool_name", models.TextField(null=True)),
                ("since", models.DateTimeField(null=True)),
                ("until", models.DateTimeField(null=True)),
                ("set_at", models.DateTimeField()),
                ("set_by", models.TextField()),
                ("released_at", models.DateTimeField(null=True)),
                ("released_by", models.TextField(null=True)),
                ("release_reason", models.TextField(null=True)),
            ],
            options={"db_table": "legal_hold", "managed": False},
        ),
        migrations.CreateModel(
            name="LedgerErasure",
            fields=[
                ("pk", _key("tenant_id", "entry_index")),
                ("tenant_id", models.UUIDField()),
                ("entry_index", models.BigIntegerField()),
                ("begin_index", models.BigIntegerField()),
                ("end_index", models.BigIntegerField()),
                ("erasure_id", models.UUIDField(null=True)),
            ],
            options={"db_table": "ledger_erasure", "managed": False},
        ),
        migrations.AddField(
            model_name="ledgercheck",
            name="missing",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.BigIntegerField(), default=list
            ),
        ),
    ]

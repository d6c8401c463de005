from typing import Any

from django.db import migrations, models

from config.postgresql.migrations import RunSQLFile


def _key(*names: str) -> Any:
    return models.CompositePrimaryKey(
        *names, blank=True, editable=False, primary_key=True, serialize=False
    )


class Migration(migrations.Migration):
    dependencies = [("audit", "0015_wide_rollup")]
    operations = [
        RunSQLFile("0016_ledger"),
        # The tables are unmanaged: these tell the state alone.
        migrations.CreateModel(
            name="LedgerCheckpoint",
            fields=[
                ("pk", _key("tenant_id", "epoch", "size")),
                ("tenant_id", models.UUIDField()),
                ("epoch", models.IntegerField()),
                ("size", models.BigIntegerField()),
                ("origin", models.TextField()),
                ("root", models.BinaryField()),
                ("note", models.TextField()),
                ("signed_at", models.DateTimeField()),
            ],
            options={"db_table": "ledger_checkpoint", "managed": False},
        ),
        migrations.CreateModel(
            name="LedgerKey",
            fields=[
                ("public_key", models.BinaryField(primary_key=True, serialize=False)),
                ("created_at", models.DateTimeField()),
                ("signs_until", models.DateTimeField(null=True)),
            ],
            options={"db_table": "ledger_key", "managed": False},
        ),
    ]

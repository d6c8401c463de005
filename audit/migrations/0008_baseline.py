"""Whether a tenant's log has its baseline. Older code appends none."""

from django.db import migrations

from config.postgresql.migrations import OlderCodeMayGoOn, RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("audit", "0007_decision_indexes"), ("tenants", "0004_action_rows")]
    operations = [
        RunSQLFile("schema/baseline"),
        OlderCodeMayGoOn("audit", "0008_baseline"),
    ]

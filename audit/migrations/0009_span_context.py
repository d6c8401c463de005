"""What spans report about the calls below them: older code writes none."""

from django.db import migrations

from config.postgresql.migrations import OlderCodeMayGoOn, RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("audit", "0008_baseline")]
    operations = [
        RunSQLFile("schema/span_context"),
        OlderCodeMayGoOn("audit", "0009_span_context"),
    ]

from django.db import migrations

from config.migrations import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("audit", "0018_ledger_check")]
    operations = [RunSQLFile("0019_failed_calls")]

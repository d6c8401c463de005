from django.db import migrations

from config.postgresql.migrations import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("audit", "0014_report")]
    operations = [RunSQLFile("0015_wide_rollup")]

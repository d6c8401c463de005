from django.db import migrations

from config.postgresql.migrations import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("audit", "0025_error_codes")]
    operations = [RunSQLFile("0026_runs_by_name")]

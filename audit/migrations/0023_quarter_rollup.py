from django.db import migrations

from config.postgresql.migrations import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("audit", "0022_drift")]
    operations = [RunSQLFile("0023_quarter_rollup")]

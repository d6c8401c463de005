from django.db import migrations

from config.postgresql.migrations import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("audit", "0023_quarter_rollup")]
    operations = [RunSQLFile("0024_searches_end")]

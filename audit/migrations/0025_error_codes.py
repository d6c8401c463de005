from django.db import migrations

from config.postgresql.migrations import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("audit", "0024_searches_end")]
    operations = [RunSQLFile("0025_error_codes")]

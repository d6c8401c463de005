from django.db import migrations

from config.postgresql.migrations import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("audit", "0019_hold")]
    operations = [RunSQLFile("0020_failed_calls")]

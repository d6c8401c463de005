from django.db import migrations

from config.postgresql.migrations import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("audit", "0013_merged_calls")]
    operations = [RunSQLFile("0014_report")]

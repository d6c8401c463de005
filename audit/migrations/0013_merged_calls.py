from django.db import migrations

from config.postgresql.migrations import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("audit", "0012_polling_tool")]
    operations = [RunSQLFile("0013_merged_calls")]

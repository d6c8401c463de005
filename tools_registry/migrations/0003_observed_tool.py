from django.db import migrations

from config.postgresql.migrations import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("tools_registry", "0002_tool_change")]
    operations = [RunSQLFile("0003_observed_tool")]

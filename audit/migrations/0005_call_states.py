"""The states waiting, working and cancelled of calls.

An older process would take them for open calls that have ended, so it must stop.
"""

from django.db import migrations

from config.postgresql.migrations import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("audit", "0004_definition")]
    operations = [RunSQLFile("schema/call_states")]

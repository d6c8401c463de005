"""The keeper may blank the users of calls: older code blanks none."""

from django.db import migrations

from config.postgresql.migrations import OlderCodeMayGoOn, RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("audit", "0014_plain_names")]
    operations = [
        RunSQLFile("schema/erased_users"),
        OlderCodeMayGoOn("audit", "0015_erased_users"),
    ]

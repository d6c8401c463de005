"""Nobody is a Django superuser: members have roles, and no role of the database can set the flag."""

from django.db import migrations

from config.postgresql.migrations import OlderCodeMayGoOn, RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("tenants", "0002_shared_tables")]
    operations = [
        RunSQLFile("schema/no_superusers"),
        OlderCodeMayGoOn("tenants", "0003_no_superusers"),
    ]

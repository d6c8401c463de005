from django.db import migrations

from config.postgresql.migrations import OlderCodeMayGoOn, RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("tenants", "0007_reveal_index")]
    operations = [
        RunSQLFile("0008_tolerated_migration"),
        OlderCodeMayGoOn("tenants", "0008_tolerated_migration"),
    ]

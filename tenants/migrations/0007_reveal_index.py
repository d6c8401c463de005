from django.db import migrations

from config.postgresql.migrations import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("tenants", "0006_action_entry")]
    operations = [RunSQLFile("0007_reveal_index")]

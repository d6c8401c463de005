from django.db import migrations

from config.postgresql.migrations import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("audit", "0008_payload_search")]
    operations = [RunSQLFile("0009_cheaper_sums")]

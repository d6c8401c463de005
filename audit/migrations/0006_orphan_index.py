from django.db import migrations

from config.postgresql.migrations import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("audit", "0005_otlp")]
    operations = [RunSQLFile("0006_orphan_index")]

from django.db import migrations

from config.postgresql.migrations import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("audit", "0004_inbox")]
    operations = [RunSQLFile("0005_otlp")]

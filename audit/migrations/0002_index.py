from django.db import migrations

from config.postgresql.migrations import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("audit", "0001_log")]
    operations = [RunSQLFile("0002_index")]

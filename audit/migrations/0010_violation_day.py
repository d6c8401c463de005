from django.db import migrations

from config.postgresql.migrations import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("audit", "0009_cheaper_sums")]
    operations = [RunSQLFile("0010_violation_day")]

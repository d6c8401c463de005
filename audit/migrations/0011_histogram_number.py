from django.db import migrations

from config.postgresql.migrations import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("audit", "0010_violation_day")]
    operations = [RunSQLFile("0011_histogram_number")]

"""Violations that the server finds in the outputs of spans can be replaced.

An older process would leave the violations of a replaced account, so it must stop.
"""

from django.db import migrations

from config.postgresql.migrations import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("audit", "0001_schema")]
    operations = [RunSQLFile("schema/span_findings")]

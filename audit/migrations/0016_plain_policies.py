"""Policies without subqueries, as Citus needs them. Older code marks no call as absorbed."""

from django.db import migrations

from config.postgresql.migrations import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("audit", "0015_erased_users")]
    operations = [RunSQLFile("schema/plain_policies")]

"""Definitions of tools as served: older code writes none and need not know the tables."""

from django.db import migrations

from config.postgresql.migrations import OlderCodeMayGoOn, RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("audit", "0003_decision")]
    operations = [
        RunSQLFile("schema/definition"),
        OlderCodeMayGoOn("audit", "0004_definition"),
    ]

"""Tokens of models' answers: older code stores none and need not know the table."""

from django.db import migrations

from config.postgresql.migrations import OlderCodeMayGoOn, Step


class Migration(migrations.Migration):
    dependencies = [("audit", "0008_argument_comparison")]
    operations = [
        Step("llm_usage"),
        OlderCodeMayGoOn("audit", "0009_llm_usage"),
    ]

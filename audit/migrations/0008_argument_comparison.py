"""Comparisons of arguments: older code makes none and need not know the table."""

from django.db import migrations

from config.postgresql.migrations import OlderCodeMayGoOn, Step


class Migration(migrations.Migration):
    dependencies = [("audit", "0007_prices")]
    operations = [
        Step("argument_comparison"),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    "ArgumentComparison", [], {"db_table": "argument_comparison", "managed": False}
                ),
            ]
        ),
        OlderCodeMayGoOn("audit", "0008_argument_comparison"),
    ]

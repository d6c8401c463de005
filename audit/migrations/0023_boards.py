"""Boards: older code shows none and need not know the table."""

from django.db import migrations

from config.postgresql.migrations import OlderCodeMayGoOn, Step


class Migration(migrations.Migration):
    dependencies = [("audit", "0022_team_views")]
    operations = [
        Step("boards"),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel("Board", [], {"db_table": "board", "managed": False}),
            ]
        ),
        OlderCodeMayGoOn("audit", "0023_boards"),
    ]

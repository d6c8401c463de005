"""Shared views, views of other pages than calls, and what users chose for pages: older code knows
none of them."""

from django.db import migrations

from config.postgresql.migrations import OlderCodeMayGoOn, Step


class Migration(migrations.Migration):
    dependencies = [("audit", "0021_samples")]
    operations = [
        Step("team_views"),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    "PageChoice", [], {"db_table": "page_choice", "managed": False}
                ),
            ]
        ),
        OlderCodeMayGoOn("audit", "0022_team_views"),
    ]

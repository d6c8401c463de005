"""Share links: older code makes none and need not know the table."""

from django.db import migrations

from config.postgresql.migrations import OlderCodeMayGoOn, Step


class Migration(migrations.Migration):
    dependencies = [("audit", "0014_witness_answer")]
    operations = [
        Step("share_links"),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    "ShareLink", [], {"db_table": "share_link", "managed": False}
                ),
            ]
        ),
        OlderCodeMayGoOn("audit", "0015_share_links"),
    ]

"""The archive: older code fills none, and an operator begins one when all hosts know it."""

from django.db import migrations

from config.postgresql.migrations import OlderCodeMayGoOn, Step


class Migration(migrations.Migration):
    dependencies = [("audit", "0024_floor_requests")]
    operations = [
        Step("archive"),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel("Archive", [], {"db_table": "archive", "managed": False}),
                migrations.CreateModel(
                    "ArchiveSegment", [], {"db_table": "archive_segment", "managed": False}
                ),
            ]
        ),
        OlderCodeMayGoOn("audit", "0025_archive"),
    ]
